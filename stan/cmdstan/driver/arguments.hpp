// The command line as a tree of named nodes: what may be said (argument_table.cpp), reading it
// (arguments.cpp) and writing it back (argument_print.cpp). Nothing here knows of Stan.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace onebasin {

enum class Kind {
  group,     // bare `name`; reads on through its children
  choice,    // `name=value`; the value names one child, which reads on
  leaf,      // a choice's value that has no arguments of its own
  integer,   // int
  natural,   // unsigned int; a minus sign wraps around, as std::stoul lets it
  wide,      // 64-bit integer
  real,      // double
  boolean,   // 0, 1, true or false
  text       // any string
};

// Integers of every kind are kept as long long.
using Value = std::variant<bool, long long, double, std::string>;

struct Node {
  Kind kind = Kind::leaf;
  std::string name;
  std::string about;
  Value value = std::string();
  Value preset = std::string();  // the value when the command line is silent
  std::function<bool(const Value&)> valid;
  std::string allowed;  // the valid values in words
  std::vector<Node> children;
  bool given = false;

  bool is_value() const { return kind >= Kind::integer; }

  Node* find(const std::string& child_name);
  const Node* find(const std::string& child_name) const;

  // A child that the table promises; a missing one is a fault of the driver, not of the user.
  const Node& operator[](const std::string& child_name) const;

  // The child that a choice has settled on.
  const Node& selected() const { return (*this)[text()]; }

  bool flag() const { return std::get<bool>(value); }
  int integer() const { return static_cast<int>(std::get<long long>(value)); }
  unsigned natural() const { return static_cast<unsigned>(std::get<long long>(value)); }
  double real() const { return std::get<double>(value); }
  const std::string& text() const { return std::get<std::string>(value); }
};

// The whole tree with every default in place.
Node argument_table();

enum class Outcome {
  run,     // arguments read, a method chosen
  done,    // the answer (help, build info) is all that was asked for
  failed   // messages are on standard error
};

// Reads `tokens` into `root`. Help goes to standard output, complaints to standard error.
Outcome read_arguments(Node& root, const std::vector<std::string>& tokens);

std::string value_text(const Node& node);

// One line an argument, indented by two blanks a level; only the selected branch of a choice.
std::vector<std::string> describe(const Node& root);

std::string usage(const Node& node, bool recursive);

// Where in the tree a name is allowed, written as it would be on the command line.
std::vector<std::string> places_of(const Node& root, const std::string& name);

}  // namespace onebasin
