-- A rolling window: an id is forgotten when it was not met for P.age_ms, when P.size newer ones came, or when it was
-- turned away P.hits times (then it counts as new once more). 0 switches a limit off.
return {
  add = function(root, run, id, version)
    local at, hits, now = root .. ":window", root .. ":window:hits", now_ms()
    local known = redis.call("ZSCORE", at, id)
    if known and P.age_ms > 0 and tonumber(known) <= now - P.age_ms then known = false end
    if known and P.hits > 0 and redis.call("HINCRBY", hits, id, 1) > P.hits then known = false end
    redis.call("ZADD", at, now, id)
    if known then return false, "" end
    redis.call("HDEL", hits, id)
    local old = {}
    if P.age_ms > 0 then old = redis.call("ZRANGEBYSCORE", at, "-inf", now - P.age_ms, "LIMIT", 0, 100) end
    if #old == 0 and P.size > 0 and redis.call("ZCARD", at) > P.size then old = redis.call("ZRANGE", at, 0, 0) end
    if #old > 0 then
      redis.call("ZREM", at, unpack(old))
      redis.call("HDEL", hits, unpack(old))
    end
    return true, ""
  end,
  over = function(root, run) end,
}
