# Fails unless the C++ block of README is EXAMPLE, byte for byte.
file(READ ${README} readme)
file(READ ${EXAMPLE} example)
string(FIND "${readme}" "```cpp\n${example}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR
    "the C++ example in ${README} differs from ${EXAMPLE}: copy it over")
endif()
