// The draws of one or more chains, read from Stan's CSV files, and their statistics.
//
// Stan's headers are seen by draws.cpp alone: they take twenty seconds to compile, and one of their
// functions is not `inline`, so that a second file could not be linked to it.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace onebasin {

// What a file says about the run that wrote it.
struct RunFacts {
  std::string model;
  std::string method;
  std::string algorithm;
  std::string engine;
  std::size_t iterations;
  std::size_t warmup;
  std::size_t thin;
  int max_depth;
  // Zero where the method does not report them.
  double warmup_seconds;
  double sampling_seconds;
};

// A file that is no table of draws.
class CsvError : public std::runtime_error {
 public:
  CsvError(const std::string& path, const std::string& reason)
      : std::runtime_error("Cannot parse input csv file: " + path + ": " + reason + "."),
        file(path) {}
  const std::string file;
};

// A file that has column names, but no draws after warm-up.
class NoDraws : public CsvError {
 public:
  explicit NoDraws(const std::string& path) : CsvError(path, "no draws found") {}
};

// Warm-up draws are left out. All statistics are over the draws of all chains. Those that need a
// column to be finite, to vary, or to have four draws a chain are NaN where it does not.
class Draws {
 public:
  // One chain a file. Throws CsvError, or std::invalid_argument if the chains have different
  // columns or lengths.
  explicit Draws(const std::vector<std::string>& files);
  ~Draws();

  const std::vector<RunFacts>& runs() const { return runs_; }  // one a chain
  const std::vector<std::string>& names() const;               // `a[1,2]`, `b.1[2]`, ...
  int chains() const { return static_cast<int>(runs_.size()); }
  int draws_per_chain() const;
  int size() const { return chains() * draws_per_chain(); }
  double sampling_seconds() const;  // of all chains together

  std::vector<double> values(int column) const;  // chain after chain
  double mean(int column) const;
  double mcse(int column) const;  // of the mean
  double sd(int column) const;
  double variance(int column) const;
  double mad(int column) const;  // median absolute deviation, scaled to the sd of a Gaussian
  double quantile(int column, double probability) const;

  // Rank-normalised, over half chains. Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021).
  struct Ess {
    double bulk;
    double tail;
  };
  Ess ess(int column) const;
  double rhat(int column) const;  // the larger of bulk and tail

  // The same by its formula, also where half a chain does not vary or all begin with one value;
  // there Stan says NaN, even of a chain that is stuck. NaN if the draws are not finite, or equal.
  double rhat_of_any_chains(int column) const;

  std::vector<double> autocorrelation(int chain, int column) const;  // from lag 0

 private:
  struct Chains;
  std::unique_ptr<Chains> chains_;
  std::vector<RunFacts> runs_;
};

}  // namespace onebasin
