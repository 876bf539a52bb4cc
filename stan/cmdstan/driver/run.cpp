#include "run.hpp"

#include "output_files.hpp"

#include <stan/version.hpp>

#include <ctime>
#include <iostream>
#include <stdexcept>

namespace onebasin {

Run::Run(stan::model::model_base& the_model, const Node& the_arguments, unsigned the_seed)
    : model(the_model),
      arguments(the_arguments),
      method(the_arguments["method"].selected()),
      seed(the_seed),
      id(static_cast<unsigned>(the_arguments["id"].integer())),
      refresh(the_arguments["output"]["refresh"].integer()),
      digits(the_arguments["output"]["sig_figs"].integer()),
      logger(std::cout, std::cout, std::cout, std::cerr, std::cerr) {
  const std::string& init = arguments["init"].text();
  try {
    init_radius_ = std::stod(init);  // a leading number is enough, as everywhere in this grammar
  } catch (const std::logic_error&) {
    init_path_ = init;
  }
}

std::vector<Context> Run::inits(int chains) const {
  return read_contexts(init_path_, static_cast<int>(id), chains);
}

std::string utc_now() {
  const std::time_t seconds = std::time(nullptr);
  std::tm calendar{};
  gmtime_r(&seconds, &calendar);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &calendar);
  return text;
}

void Run::write_config(CsvWriter& writer, bool complete) const {
  writer("stan_version_major = " + stan::MAJOR_VERSION);
  writer("stan_version_minor = " + stan::MINOR_VERSION);
  writer("stan_version_patch = " + stan::PATCH_VERSION);
  writer("model = " + model.model_name());
  if (complete) writer("start_datetime = " + utc_now());
  for (const std::string& line : describe(arguments)) writer(line);
  if (!complete) return;
  for (const std::string& line : model.model_compile_info()) writer(line);
}

CsvWriter Run::result_file(const std::string& path) const {
  CsvWriter writer(open_output(path, digits), "# ");
  write_config(writer, true);
  return writer;
}

std::vector<std::string> Run::result_names(int chains) const {
  return numbered_names(output_path(), "", "", static_cast<int>(id), chains);
}

std::vector<CsvWriter> Run::results(int chains) const {
  std::vector<CsvWriter> writers;
  for (const std::string& name : result_names(chains)) writers.push_back(result_file(name));
  return writers;
}

std::vector<CsvWriter> Run::diagnostics(int chains) const {
  std::vector<CsvWriter> writers;
  if (diagnostic_path().empty()) {
    for (int i = 0; i < chains; ++i)
      writers.emplace_back(std::unique_ptr<std::ofstream>(), "# ");
    return writers;
  }
  for (const std::string& name :
       numbered_names(diagnostic_path(), "", "", static_cast<int>(id), chains)) {
    writers.emplace_back(open_output(name, digits), "# ");
    write_config(writers.back(), false);
  }
  return writers;
}

std::vector<JsonWriter> Run::json_files(const std::string& path, const std::string& tag,
                                        int chains, bool wanted) const {
  std::vector<JsonWriter> writers;
  if (!wanted) {
    for (int i = 0; i < chains; ++i) writers.emplace_back();
    return writers;
  }
  for (const std::string& name :
       numbered_names(path, tag, ".json", static_cast<int>(id), chains))
    writers.emplace_back(open_output(name, digits, Flushing::always));
  return writers;
}

}  // namespace onebasin
