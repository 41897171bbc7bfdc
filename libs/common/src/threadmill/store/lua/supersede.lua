-- supersede: a leased request is replaced (a redirect, a middleware's retry) under the same lease, so that whoever
-- takes the page over takes it up where it stood.
-- KEYS 1 leased
-- ARGV per page: lease id, payload
-- Returns per page 1, or 0 if the lease is another's.
-- Twice: writes the same payload again.
local answers = {}
for i = 1, #ARGV, 2 do
  local member = redis.call("HGET", KEYS[1], ARGV[i])
  if member then
    local job, run, priority, deliveries, failures = parse(string.sub(member, 9))
    local record = compose(job, run, priority, deliveries, failures, ARGV[i + 1])
    redis.call("HSET", KEYS[1], ARGV[i], string.sub(member, 1, 8) .. record)
  end
  answers[#answers + 1] = member and 1 or 0
end
return answers
