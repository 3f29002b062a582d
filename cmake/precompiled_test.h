// What nearly every test includes, parsed once per build tree.
#include "precompiled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
