// Reading the command line into the tree.
#include "arguments.hpp"

#include "build_info.hpp"

#include <cstddef>
#include <iostream>

namespace onebasin {

Node* Node::find(const std::string& child_name) {
  for (Node& child : children)
    if (child.name == child_name) return &child;
  return nullptr;
}

const Node* Node::find(const std::string& child_name) const {
  return const_cast<Node*>(this)->find(child_name);
}

const Node& Node::operator[](const std::string& child_name) const {
  const Node* child = find(child_name);
  if (!child) throw std::logic_error("no argument `" + child_name + "` under `" + name + "`");
  return *child;
}

namespace {

// Numbers follow std::sto*: leading blanks are skipped and a numeric prefix is enough.
Value convert(Kind kind, const std::string& word) {
  switch (kind) {
    case Kind::integer:
      return static_cast<long long>(std::stoi(word));
    case Kind::natural:
      return static_cast<long long>(static_cast<unsigned>(std::stoul(word)));
    case Kind::wide:
      return std::stoll(word);
    case Kind::real:
      return std::stod(word);
    case Kind::boolean:
      if (word == "1" || word == "true") return true;
      if (word == "0" || word == "false") return false;
      throw std::invalid_argument(word);
    default:
      return word;
  }
}

class Reader {
 public:
  Reader(Node& root, const std::vector<std::string>& tokens) : root_(root), tokens_(tokens) {}

  Outcome read();

 private:
  bool more() const { return position_ < tokens_.size(); }
  const std::string& token() const { return tokens_[position_]; }
  std::string token_name() const { return token().substr(0, token().find('=')); }
  bool has_value() const { return token().find('=') != std::string::npos; }
  std::string token_value() const { return token().substr(token().find('=') + 1); }

  bool read_top_level();
  bool read_node(Node& node);
  bool read_value(Node& node);
  bool read_choice(Node& node);
  bool read_children(Node& group);
  bool asked_for_help(const Node& node);

  static bool invalid(const Node& node, const std::string& word);
  bool misplaced() const;

  Node& root_;
  const std::vector<std::string>& tokens_;
  std::size_t position_ = 0;
  bool answered_ = false;
};

Outcome Reader::read() {
  const bool understood = read_top_level();
  if (answered_) return Outcome::done;
  const bool has_method = root_["method"].given;
  if (!has_method) std::cerr << "A method must be specified!\n";
  if (understood && has_method) return Outcome::run;
  std::cerr << "Failed to parse command arguments, cannot run model.\n";
  return Outcome::failed;
}

bool Reader::read_top_level() {
  while (more()) {
    if (asked_for_help(root_)) return false;
    if (token() == "info") {
      std::cout << build_info();
      answered_ = true;
      return false;
    }
    Node* child = root_.find(token_name());
    Node& method = *root_.find("method");
    if (!child && !has_value() && !method.given && method.find(token())) {
      // `log_prob ...` is short for `method=log_prob ...`
      method.value = token();
      method.given = true;
      Node& chosen = *method.find(token());
      ++position_;
      if (!read_children(chosen)) return false;
      continue;
    }
    if (!child || child->given) return misplaced();
    child->given = true;
    if (!read_node(*child)) return false;
  }
  return true;
}

bool Reader::read_node(Node& node) {
  if (node.is_value()) return read_value(node);
  if (node.kind == Kind::choice) return read_choice(node);
  if (has_value()) return misplaced();
  ++position_;
  return read_children(node);
}

bool Reader::read_value(Node& node) {
  if (!has_value()) {  // a bare name changes nothing
    ++position_;
    return true;
  }
  const std::string word = token_value();
  try {
    const Value value = convert(node.kind, word);
    if (node.valid && !node.valid(value)) return invalid(node, word);
    node.value = value;
  } catch (const std::logic_error&) {  // invalid_argument and out_of_range of std::sto*
    return invalid(node, word);
  }
  ++position_;
  return true;
}

bool Reader::read_choice(Node& node) {
  if (!has_value()) {
    node.given = false;
    ++position_;
    return true;
  }
  const std::string word = token_value();
  Node* chosen = node.find(word);
  if (!chosen) {
    node.given = false;
    return invalid(node, word);
  }
  node.value = word;
  node.given = true;
  ++position_;
  return chosen->kind == Kind::leaf || read_children(*chosen);
}

// Reads while tokens belong to this group, then hands back to the enclosing one: that is how
// `algorithm=hmc stepsize=1 adapt delta=0.9 num_chains=2` finds its way out again.
bool Reader::read_children(Node& group) {
  while (more()) {
    if (asked_for_help(group)) return false;
    if (token() == group.name) return misplaced();
    Node* child = group.find(token_name());
    if (!child) return true;
    if (!read_node(*child)) return false;
  }
  return true;
}

bool Reader::asked_for_help(const Node& node) {
  if (token() != "help" && token() != "help-all") return false;
  std::cout << usage(node, token() == "help-all");
  if (&node != &root_) std::cout << '\n' << usage(root_, false);
  answered_ = true;
  return true;
}

bool Reader::invalid(const Node& node, const std::string& word) {
  std::cerr << word << " is not a valid value for \"" << node.name << "\"\n"
            << "  Valid values: " << node.allowed << '\n';
  return false;
}

bool Reader::misplaced() const {
  std::cerr << token() << " is either mistyped or misplaced.\n";
  const std::vector<std::string> places = places_of(root_, token_name());
  if (!places.empty()) {
    std::cerr << "Perhaps you meant one of the following valid configurations?\n";
    for (const std::string& place : places) std::cerr << "  " << place << '\n';
  }
  return false;
}

}  // namespace

Outcome read_arguments(Node& root, const std::vector<std::string>& tokens) {
  if (tokens.empty()) {
    std::cout << usage(root, false);
    return Outcome::failed;
  }
  return Reader(root, tokens).read();
}

}  // namespace onebasin
