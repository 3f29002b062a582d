#include "app/command_line.h"

int main(int count, char** words) {
    return molly::app::run(count, words);
}
