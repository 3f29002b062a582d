#pragma once
// The whole command line.

namespace molly::app {

/// Parses and runs one command. Gives the exit code of the process.
int run(int count, char** words);

}  // namespace molly::app
