// What nearly every test includes, parsed once per build tree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "precompiled.h"
