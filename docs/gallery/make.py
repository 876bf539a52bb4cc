"""Make the reports of the gallery and screenshots of their answers: `python docs/gallery/make.py FOLDER`.

The script samples the posteriors and writes six reports with the command line, as a user would; one report compares
three posteriors. Only the network is sampled in Python. The reports are written to the folder of this file, the
screenshots to `docs/images`, and the posteriors to FOLDER. The script needs Chromium.
"""

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
IMAGES = HERE.parent / "images"
PROGRAMS = HERE.parents[1] / "notebooks" / "programs"
SCREEN = {"width": 1000, "height": 800}
REPORTS = {
    "mixture": ("A mixture whose labels switch", ["mixture"]),
    "item-response": ("An item-response model", ["item_response"]),
    "schools": ("Eight schools, centred", ["schools_centred"]),
    "regression": ("A regression", ["regression"]),
    "network": ("A Bayesian neural network", ["network"]),
    "several": ("Eight schools, three ways", ["schools", "schools_centred", "schools_advi"]),
}


def onebasin(*words: str, folder: Path) -> None:
    """Run the command line in a folder."""
    command = [sys.executable, "-c", "from onebasin.cli.main import main; main()", *words]
    subprocess.run(command, check=True, cwd=folder)


def sample(folder: Path) -> None:
    """Sample the posteriors that are missing from the folder."""
    for path in (*PROGRAMS.glob("*.stan"), *PROGRAMS.glob("*.json")):
        shutil.copy(path, folder)
    runs = {
        "mixture": ("mixture.stan", "mixture.json", "--seed", "1"),
        "item_response": ("item_response.stan", "item_response.json", "--seed", "1"),
        "schools_centred": ("schools_centred.stan", "schools.json", "--seed", "1"),
        "schools": ("schools.stan", "schools.json", "--seed", "1"),
        "schools_advi": (
            "schools.stan",
            "schools.json",
            "--method",
            "meanfield",
            "--no-weights",
            "--seed",
            "1",
        ),
        "regression": ("regression.stan", "regression.json", "--seed", "1"),
    }
    for name, words in runs.items():
        if not (folder / f"{name}.nc").exists():
            onebasin("sample", *words, "--out", f"{name}.nc", folder=folder)
    if not (folder / "network.nc").exists():
        sample_network(folder / "network.nc")


def sample_network(path: Path) -> None:
    """Sample a network with four hidden units, fitted to 60 points on a curve."""
    import numpy as np

    import onebasin as ob

    rng = np.random.default_rng(7)
    x = np.sort(rng.uniform(-3, 3, size=(60, 1)), axis=0)
    y = np.sin(1.5 * x) + 0.2 * rng.normal(size=x.shape)
    model = ob.networks.BayesianNetwork(ob.networks.Network(1, (4,), 1, activation="tanh"))
    ob.save(ob.nuts(model.condition(x, y), seed=1), path)


def photograph(page: Path, picture: Path) -> None:
    """Save a screenshot of the answers at the top of a page as a PNG."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        shown = chromium.new_page(viewport=SCREEN)
        shown.goto(page.resolve().as_uri())
        shown.locator(".answers, .answer").first.screenshot(path=picture)
        chromium.close()


def main(folder: Path) -> None:
    """Sample the posteriors, write the reports and take the screenshots."""
    folder.mkdir(parents=True, exist_ok=True)
    sample(folder)
    for name, (title, runs) in REPORTS.items():
        files = [f"{run}.nc" for run in runs]
        variables = ["--var", "mu", "--var", "tau", "--var", "theta"] if len(runs) > 1 else []
        words = (*files, *variables, "--title", title, "--out", f"{name}.html", "--force")
        onebasin("report", *words, folder=folder)
        shutil.copy(folder / f"{name}.html", HERE)
        photograph(HERE / f"{name}.html", IMAGES / f"report-{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
