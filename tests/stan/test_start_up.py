import subprocess
import sys


def test_a_program_of_ones_own_needs_no_jax():
    script = "import sys; from onebasin.stan import stan_program; print('jax._src' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "False"
