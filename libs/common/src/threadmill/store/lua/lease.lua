-- lease: take requests to work on, as many as the site's shared rate allows; due delayed ones come back first.
-- KEYS 1 requests  2 delayed  3 leases  4 leased  5 control  6 site  7 reports
-- ARGV worker, number of the call (each greater than the last), want (above 1000 counts as 1000), ttl in ms,
--      interval between requests of the site in microseconds (0 = no limit), 1 if it may lease although Redis is full
-- Returns {waiting, ms until a look may bring more (-1 = nothing known), then per lease: id, record}.
-- Twice: leases are named after worker and number, so the second call finds and returns the first one's. A copy that
-- comes when those are gone, or when there were none, leases nothing: a number is used once.
local requests, delayed, leases, leased, control, site = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reports, worker, number = KEYS[7], ARGV[1], tonumber(ARGV[2])
local token = worker .. "." .. ARGV[2]
-- Lua unpacks at most 8,000 values, and would fail after the requests have left the queue.
local MOST = 1000
local want, ttl, interval = math.min(tonumber(ARGV[3]), MOST), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = now_ms()
local answer = { 0, -1 }

-- Any of them, not just the first: that one may have been settled or reclaimed already, and a lease must never be
-- written over another. A worker that was forgotten may still have some.
local used = redis.call("HGET", reports, worker .. ":lease")
if want > 0 and number <= tonumber(used or number) then
  local ids = {}
  for i = 1, want do ids[i] = token .. "." .. i end
  local members = redis.call("HMGET", leased, unpack(ids))
  for i = 1, want do
    if members[i] then
      answer[#answer + 1] = ids[i]
      answer[#answer + 1] = string.sub(members[i], 9)
    end
  end
  if #answer > 2 or used then
    answer[1] = redis.call("ZCARD", requests)
    if #answer == 2 then answer[2] = 1 end
    return answer
  end
end

-- Work that drains the pipeline makes room and goes on when there is none. What fills it is refused here by a server that
-- is full: HSETNX may take memory, if only the first time.
if ARGV[6] == "1" then
  although_full(leased)
else
  redis.call("HSETNX", reports, worker .. ":lease", 0)
end

local due = redis.call("ZRANGEBYSCORE", delayed, "-inf", now, "LIMIT", 0, want)
for _, member in ipairs(due) do
  local _, _, priority = parse(string.sub(member, 9))
  place(requests, member, priority, score)
end
if #due > 0 then redis.call("ZREM", delayed, unpack(due)) end

local rule = redis.call("HMGET", control, "paused", "rate")
local state = redis.call("HMGET", site, "next_us", "paused_until")
local rate = tonumber(rule[2] or "")
if rate then interval = rate > 0 and 1e6 / rate or 0 end
if rule[1] == "1" then
  want = 0
elseif state[2] and tonumber(state[2]) > now then
  answer[2] = tonumber(state[2]) - now
  want = 0
elseif interval > 0 and want > 0 then
  -- A slot every `interval`; at most a tenth of a second's worth (and always one) may be taken ahead of the clock.
  local us = now * 1000
  local next_us = math.max(tonumber(state[1] or 0), us)
  local room = math.floor((us + 100000 - next_us) / interval)
  if room < 1 and next_us <= us then room = 1 end
  local waiting = redis.call("ZCARD", requests)
  want = math.max(0, math.min(want, room, waiting))
  if want > 0 then
    next_us = next_us + want * interval
    redis.call("HSET", site, "next_us", string.format("%.0f", next_us))
  end
  if waiting > want then answer[2] = math.max(1, math.ceil((next_us - us) / 1000)) end
end

if want > 0 then
  local popped = redis.call("ZPOPMIN", requests, want)
  local expiries, members = {}, {}
  for i = 1, #popped, 2 do
    local id = token .. "." .. (i + 1) / 2
    expiries[#expiries + 1] = now + ttl
    expiries[#expiries + 1] = id
    members[#members + 1] = id
    members[#members + 1] = popped[i]
    answer[#answer + 1] = id
    answer[#answer + 1] = string.sub(popped[i], 9)
  end
  if #members > 0 then
    redis.call("ZADD", leases, unpack(expiries))
    redis.call("HSET", leased, unpack(members))
  end
end
-- A server that is full may refuse this when nothing was leased; it will refuse a late copy, too.
redis.pcall("HSET", reports, worker .. ":lease", number)
answer[1] = redis.call("ZCARD", requests)
if answer[2] < 0 then
  local first = redis.call("ZRANGE", delayed, 0, 0, "WITHSCORES")
  if first[2] then answer[2] = math.max(1, tonumber(first[2]) - now) end
end
return answer
