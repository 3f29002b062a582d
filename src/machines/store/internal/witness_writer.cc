#include "store/internal/witness_writer.h"

#include "base/log.h"

namespace molly::store::internal {

void WitnessWriter::look(Tables& tables, bool now) {
    if (file_.empty()) return;
    const MonoTime time = system_clock().now();
    if (!now && tried_ && time - *tried_ < every_) return;
    tried_ = time;
    const auto head = tables.head();
    if (!head || !head->has_value() || (*head)->sequence == written_) return;
    const auto added = append_witness(file_, **head, system_clock().wall());
    if (added) written_ = (*head)->sequence;
    if (!added && !failing_)
        log_event(LogLevel::error, "witness_failed", {{"error", added.error().message()}});
    if (added && failing_) log_event(LogLevel::info, "witness_works_again");
    failing_ = !added;
}

}  // namespace molly::store::internal
