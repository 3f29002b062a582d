#pragma once
// The coroutine type, without Asio: headers that only declare coroutines include this; bodies
// include base/coroutine.h.

namespace boost::asio {
class any_io_executor;
template <typename T, typename Executor>
class awaitable;
}  // namespace boost::asio

namespace molly {

/// A coroutine that runs on its caller's executor once awaited.
template <class T>
using Task = boost::asio::awaitable<T, boost::asio::any_io_executor>;

}  // namespace molly
