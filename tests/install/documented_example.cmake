# Fails unless a C++ block of PAGE is EXAMPLE, byte for byte.
file(READ ${PAGE} page)
file(READ ${EXAMPLE} example)
string(FIND "${page}" "```cpp\n${example}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR
    "the C++ example in ${PAGE} differs from ${EXAMPLE}: copy it over")
endif()
