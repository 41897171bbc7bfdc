-- hold: leave the whole site alone for a while, as it asked.
-- KEYS 1 site
-- ARGV pause in ms
-- Returns the time (ms) until which the site is left alone.
-- Twice: the second call moves it by the time between the two.
local until_ms = now_ms() + tonumber(ARGV[1])
local held = tonumber(redis.call("HGET", KEYS[1], "paused_until") or 0)
if until_ms <= held then return held end
although_full(KEYS[1])
redis.call("HSET", KEYS[1], "paused_until", until_ms)
return until_ms
