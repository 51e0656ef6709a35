# The page of the report, web/, built with npm and put into a target,
# polyattn_page, as a string (src/report/embedded_page.h).
#
# Everything happens in the build tree: npm works in a copy of web/, and only when
# something in it has changed. Where there is no npm, or its registry cannot be
# reached, AUTO makes a target without the page: polyattn then builds and runs, but
# for `polyattn report` and `polyattn dashboard`, which say what is missing.
#
# The file is also the script that does so when the target is built:
#   cmake -D WEB=... -D STAGE=... -D OUTPUT=... -D NPM=... -D INSIST=ON|OFF -P this

if(CMAKE_SCRIPT_MODE_FILE)
  cmake_policy(VERSION 3.25)
endif()

# A source file with the bytes of `html`, or with none if that is empty. Text in
# pieces, because compilers are slow with long lists of numbers and need not take
# long strings.
function(polyattn_page_source html output)
  set(pieces "    \"\"sv,\n")
  if(html)
    file(READ ${html} digits HEX)
    string(LENGTH "${digits}" length)
    set(start 0)
    while(start LESS length)
      string(SUBSTRING "${digits}" ${start} 20000 piece)
      string(REGEX REPLACE "(..)" "\\\\x\\1" piece "${piece}")
      string(APPEND pieces "    \"${piece}\"sv,\n")
      math(EXPR start "${start} + 20000")
    endwhile()
  endif()
  file(WRITE ${output}
"// Made by cmake/PolyattnPage.cmake.
#include \"report/embedded_page.h\"

#include <string_view>

namespace polyattn::report {
namespace {

using std::literals::operator\"\"sv;

constexpr std::string_view kPieces[] = {
${pieces}};

}  // namespace

std::string embedded_page() {
  std::string page;
  for (const std::string_view piece : kPieces) page += piece;
  return page;
}

}  // namespace polyattn::report
")
endfunction()

# Runs npm in the copy. Sets `problem` of the caller if it fails.
function(polyattn_run_npm)
  message(STATUS "npm ${ARGV0}: ${STAGE}/npm.log")
  execute_process(
    COMMAND ${NPM} ${ARGV}
    WORKING_DIRECTORY ${STAGE}/web
    RESULT_VARIABLE result
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text
    TIMEOUT 600)
  file(APPEND ${STAGE}/npm.log "npm ${ARGV}\n${text}\n")
  if(NOT result EQUAL 0)
    set(problem "npm ${ARGV0} failed (${result}), see ${STAGE}/npm.log" PARENT_SCOPE)
  endif()
endfunction()

# What is made from web/, and is no part of it.
set(POLYATTN_WEB_MADE build coverage dist node_modules test-results)

# web/ into the copy. Installed packages stay.
function(polyattn_copy_web)
  file(GLOB old LIST_DIRECTORIES true ${STAGE}/web/* ${STAGE}/web/.*)
  list(FILTER old EXCLUDE REGEX "/(node_modules|\\.|\\.\\.)$")
  if(old)
    file(REMOVE_RECURSE ${old})
  endif()
  file(GLOB parts ${WEB}/*)
  foreach(part ${parts})
    cmake_path(GET part FILENAME name)
    if(NOT name IN_LIST POLYATTN_WEB_MADE)
      file(COPY ${part} DESTINATION ${STAGE}/web)
    endif()
  endforeach()
endfunction()

# Builds, and sets `problem` of the caller if that cannot be done.
function(polyattn_build_web)
  set(problem)
  polyattn_copy_web()
  file(WRITE ${STAGE}/npm.log "")
  file(SHA256 ${WEB}/package.json wanted)
  file(SHA256 ${WEB}/package-lock.json lock)
  string(APPEND wanted " ${lock}")
  set(installed)
  if(EXISTS ${STAGE}/installed.txt)
    file(READ ${STAGE}/installed.txt installed)
  endif()
  if(NOT installed STREQUAL wanted)
    file(REMOVE ${STAGE}/installed.txt)
    polyattn_run_npm(ci --ignore-scripts --no-audit --no-fund --prefer-offline)
    if(NOT problem)
      file(WRITE ${STAGE}/installed.txt "${wanted}")
    endif()
  endif()
  if(NOT problem)
    polyattn_run_npm(run build)
  endif()
  set(problem "${problem}" PARENT_SCOPE)
endfunction()

# Whether the page has its one place for the document.
function(polyattn_check_page html)
  if(NOT EXISTS ${html})
    set(problem "the build made no ${html}" PARENT_SCOPE)
    return()
  endif()
  file(READ ${html} text)
  set(token "\"__POLYATTN_REPORT__\"")
  string(FIND "${text}" "${token}" first)
  string(FIND "${text}" "${token}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    set(problem "${token} does not stand once in ${html}" PARENT_SCOPE)
  endif()
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  set(problem)
  set(html ${PAGE_FILE})
  if(NOT html)
    set(html ${STAGE}/web/dist/report.html)
    polyattn_build_web()
  endif()
  if(NOT problem)
    polyattn_check_page(${html})
  endif()
  if(problem AND INSIST)
    message(FATAL_ERROR "The page of the report cannot be built: ${problem}")
  elseif(problem)
    message(WARNING "Leaving out the page of the report: ${problem}. To try again, remove "
      "${OUTPUT} or configure with -DPOLYATTN_PAGE=ON.")
    set(html)
  endif()
  polyattn_page_source("${html}" ${OUTPUT})
  return()
endif()

set(POLYATTN_PAGE AUTO CACHE STRING
  "Build the page of polyattn report with npm: ON, OFF, or AUTO (where that is possible)")
set_property(CACHE POLYATTN_PAGE PROPERTY STRINGS AUTO ON OFF)
set(POLYATTN_PAGE_FILE "" CACHE FILEPATH
  "A report.html that is built already, to take instead of building web/ with npm")
set(POLYATTN_WEB_DIR ${PROJECT_SOURCE_DIR}/web CACHE PATH "Sources of the page")
mark_as_advanced(POLYATTN_PAGE_FILE POLYATTN_WEB_DIR)
set(POLYATTN_PAGE_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

# Why there can be no page, into `result`; empty if there can.
function(polyattn_page_obstacle result)
  set(why)
  if(NOT POLYATTN_PAGE AND NOT POLYATTN_PAGE STREQUAL "AUTO")
    set(why "POLYATTN_PAGE is ${POLYATTN_PAGE}")
  elseif(POLYATTN_PAGE_FILE)
    if(NOT EXISTS ${POLYATTN_PAGE_FILE})
      set(why "there is no ${POLYATTN_PAGE_FILE}")
    endif()
  elseif(NOT EXISTS ${POLYATTN_WEB_DIR}/package-lock.json)
    set(why "there is no ${POLYATTN_WEB_DIR}/package-lock.json")
  else()
    find_program(POLYATTN_NPM npm)
    mark_as_advanced(POLYATTN_NPM)
    if(NOT POLYATTN_NPM)
      set(why "npm is not found")
    endif()
  endif()
  set(${result} ${why} PARENT_SCOPE)
endfunction()

# What the page is made from.
function(polyattn_page_sources result)
  file(GLOB parts CONFIGURE_DEPENDS ${POLYATTN_WEB_DIR}/*)
  set(sources)
  foreach(part ${parts})
    cmake_path(GET part FILENAME name)
    if(name IN_LIST POLYATTN_WEB_MADE OR name STREQUAL "tests")
      continue()
    endif()
    if(IS_DIRECTORY ${part})
      file(GLOB_RECURSE inner CONFIGURE_DEPENDS ${part}/*)
      list(APPEND sources ${inner})
    else()
      list(APPEND sources ${part})
    endif()
  endforeach()
  set(${result} ${sources} PARENT_SCOPE)
endfunction()

function(polyattn_add_page)
  set(folder ${PROJECT_BINARY_DIR}/page)
  polyattn_page_obstacle(obstacle)
  if(obstacle)
    if(POLYATTN_PAGE AND NOT POLYATTN_PAGE STREQUAL "AUTO")
      message(FATAL_ERROR "POLYATTN_PAGE is ON, but ${obstacle}")
    endif()
    message(STATUS "Leaving out the page of the report: ${obstacle}")
    set(output ${folder}/no_page.cc)
    polyattn_page_source("" ${output})
  else()
    set(output ${folder}/page.cc)
    set(sources ${POLYATTN_PAGE_FILE})
    if(NOT sources)
      polyattn_page_sources(sources)
    endif()
    set(insist ON)
    if(POLYATTN_PAGE STREQUAL "AUTO")
      set(insist OFF)
    endif()
    add_custom_command(
      OUTPUT ${output}
      COMMAND ${CMAKE_COMMAND}
        -D WEB=${POLYATTN_WEB_DIR}
        -D STAGE=${folder}
        -D OUTPUT=${output}
        -D NPM=${POLYATTN_NPM}
        -D PAGE_FILE=${POLYATTN_PAGE_FILE}
        -D INSIST=${insist}
        -P ${POLYATTN_PAGE_SCRIPT}
      DEPENDS ${sources} ${POLYATTN_PAGE_SCRIPT}
      COMMENT "Building the page of the report"
      VERBATIM)
  endif()
  add_library(polyattn_page STATIC ${output})
  polyattn_target(polyattn_page)
  set_target_properties(polyattn_page PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(polyattn_page PRIVATE ${PROJECT_SOURCE_DIR}/src)
endfunction()
