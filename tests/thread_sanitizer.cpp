// libcpp-httplib, which is not built with ThreadSanitizer, keeps regular expressions in static
// variables. Code of its own tests whether they are made, so that ThreadSanitizer does not see that
// the thread that made them comes first, and reports a race where two threads send their process's
// first requests at once.
extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "race:std::__detail::_CharMatcher\n"
         "race:std::__detail::_BracketMatcher\n"
         "race:std::__detail::_AnyMatcher\n";
}
