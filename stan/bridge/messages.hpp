// What a program prints, and the errors of its functions, on their way to the caller.
#pragma once

#include <cstring>
#include <exception>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace onebasin {

using PrintCallback = void (*)(const char* text, int size);

inline PrintCallback& print_callback() {
  static PrintCallback callback = nullptr;
  return callback;
}

// Collects what is printed during one call and hands it on at the end, however the call ends.
class Messages {
 public:
  // To `own`, or to the callback of the whole library, or to the standard output.
  explicit Messages(PrintCallback own = nullptr) : own_(own) {}

  ~Messages() {
    if (stream().tellp() <= 0) return;
    const std::string text = stream().str();
    stream().str("");
    const PrintCallback callback = own_ != nullptr ? own_ : print_callback();
    if (callback != nullptr)
      callback(text.data(), static_cast<int>(text.size()));
    else
      std::cout << text << std::flush;
  }

  operator std::ostream*() { return &stream(); }

 private:
  // One a thread: to make a stream takes longer than a small density.
  static std::ostringstream& stream() {
    thread_local std::ostringstream stream;
    return stream;
  }

  PrintCallback own_;
};

inline void hand_on(const std::string& words, char** error) {
  if (error != nullptr) *error = strdup(words.c_str());
}

// Calls, and turns an exception into a message. Returns 0 without one, 1 where the program rejects
// (a domain error, as `reject` throws) and -1 otherwise.
template <typename Call>
int guarded(const char* name, char** error, const Call& call) noexcept {
  try {
    call();
    return 0;
  } catch (const std::domain_error& rejection) {
    hand_on(std::string(name) + "() failed with exception: " + rejection.what(), error);
    return 1;
  } catch (const std::exception& exception) {
    hand_on(std::string(name) + "() failed with exception: " + exception.what(), error);
  } catch (...) {
    hand_on(std::string(name) + "() failed with an exception of no standard type", error);
  }
  return -1;
}

}  // namespace onebasin
