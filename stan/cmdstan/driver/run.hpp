// What one run of a method is given: the model, its settings, and the ways to read and write.
#pragma once

#include "arguments.hpp"
#include "input.hpp"

#include <stan/callbacks/interrupt.hpp>
#include <stan/callbacks/json_writer.hpp>
#include <stan/callbacks/stream_logger.hpp>
#include <stan/callbacks/unique_stream_writer.hpp>
#include <stan/callbacks/writer.hpp>
#include <stan/model/model_base.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace onebasin {

using CsvWriter = stan::callbacks::unique_stream_writer<std::ofstream>;
using JsonWriter = stan::callbacks::json_writer<std::ofstream>;
using NullWriter = stan::callbacks::writer;

class Run {
 public:
  Run(stan::model::model_base& model, const Node& arguments, unsigned seed);

  stan::model::model_base& model;
  const Node& arguments;
  const Node& method;  // the chosen method's own arguments
  const unsigned seed;
  const unsigned id;
  const int refresh;
  const int digits;
  stan::callbacks::interrupt interrupt;
  stan::callbacks::stream_logger logger;

  // The radius of random initial values, and one context a chain for those given in files.
  double init_radius() const { return init_radius_; }
  std::vector<Context> inits(int chains) const;

  // The names of the files that hold the results, one a chain.
  std::vector<std::string> result_names(int chains) const;

  // CSV files opened with their config block: `output file`, and `diagnostic_file` (writers that
  // write nothing where it is not asked for).
  std::vector<CsvWriter> results(int chains) const;
  std::vector<CsvWriter> diagnostics(int chains) const;

  // One JSON file a chain, `base_<tag>.json`; `wanted` false gives writers that write nothing.
  std::vector<JsonWriter> json_files(const std::string& path, const std::string& tag, int chains,
                                     bool wanted) const;

  CsvWriter result_file(const std::string& path) const;
  const std::string& output_path() const { return arguments["output"]["file"].text(); }
  const std::string& diagnostic_path() const {
    return arguments["output"]["diagnostic_file"].text();
  }

 private:
  void write_config(CsvWriter& writer, bool complete) const;

  double init_radius_ = 2;
  std::string init_path_;
};

// The present, as `2001-02-03 04:05:06 UTC`.
std::string utc_now();

// One a method; the result is a Stan service's return code, zero for success.
int run_sample(Run& run);
int run_optimize(Run& run);
int run_variational(Run& run);
int run_diagnose(Run& run);
int run_generate_quantities(Run& run);
int run_pathfinder(Run& run);
int run_log_prob(Run& run);
int run_laplace(Run& run);

}  // namespace onebasin
