// The page that is part of this build (cmake/PolyattnPage.cmake).
#pragma once

#include <string>

namespace polyattn::report {

// Empty if it was built without npm. A target of its own, polyattn_page, has
// it.
std::string embedded_page();

}  // namespace polyattn::report
