-- Closed loop: wrk sends the body of a file with the headers that follow it: wrk ... -- BODY "Name: value"...
function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    wrk.method = "POST"
    wrk.body = file:read("*a")
    file:close()
    for i = 2, #arguments do
        local name, value = arguments[i]:match("^([^:]+): (.*)$")
        wrk.headers[name] = value
    end
end

function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        '{"requests":%d,"seconds":%.4f,"failed":%d,"p50":%d,"p99":%d}\n',
        summary.requests, summary.duration / 1e6,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
