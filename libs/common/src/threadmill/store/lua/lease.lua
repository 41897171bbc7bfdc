-- lease: take requests to work on, as many as the site's shared rate allows; due delayed ones come back first.
-- KEYS 1 requests  2 delayed  3 leases  4 leased  5 control  6 site  7 reports  8 stats  9 jobs root  10 items,
--      then per stage handed down to: tasks, express, requests
-- ARGV worker, number of the call (each greater than the last), want (above 1000 counts as 1000; 0 only tells), ttl in ms,
--      interval between requests of the site in microseconds (0 = no limit), 1 if it may lease although Redis is full,
--      high and low mark of the backlog of the stages handed down to, high and low mark of the items (pages; 0 = none),
--      names of those stages joined by commas
-- Returns {waiting, ms until a look may bring more (-1 = nothing known), state, concurrency an operator wants (0 = none),
-- then per lease: id, record}. State: "", "paused", "draining", "held:" and what the stage waits for (a stage, or items).
-- Twice: leases are named after worker and number, so the second call finds and returns the first one's. A copy that
-- comes when those are gone, or when there were none, leases nothing: a number is used once.
local requests, delayed, leases, leased, control, site = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local reports, worker, number = KEYS[7], ARGV[1], tonumber(ARGV[2])
local token = worker .. "." .. ARGV[2]
-- Lua unpacks at most 8,000 values, and would fail after the requests have left the queue.
local MOST = 1000
local want, ttl, interval = math.min(tonumber(ARGV[3]), MOST), tonumber(ARGV[4]), tonumber(ARGV[5])
local now = now_ms()
local answer = { 0, -1, "", 0 }
local FIRST = #answer + 1
local rule = redis.call("HMGET", control, "paused", "rate", "draining", "concurrency", "held")
-- What somebody else wrote there, and is no such number, says nothing.
local downloads = tonumber(rule[4] or 0)
if downloads and downloads >= 1 and downloads <= 1000 then answer[4] = math.floor(downloads) end
if rule[1] == "1" then
  answer[3] = "paused"
elseif rule[3] == "1" then
  answer[3] = "draining"
elseif want == 0 and rule[5] and (ARGV[7] ~= "0" or ARGV[9] ~= "0") then
  answer[3] = "held:" .. rule[5] -- as who leased last found it
end

-- Backpressure: how many pages may be leased so that what they bring stays below the high marks. Above one the stage
-- is held, until what it waits for is below the low mark. A page brings what pages of this stage brought so far.
local function room_below_marks()
  local was, held, room = rule[5] or nil, nil, math.huge
  local under_way = redis.call("ZCARD", leases)
  local function keep_below(name, size, high, low, brings)
    if high == 0 then return end
    local fit = math.floor((high - size - under_way * brings) / brings)
    if size >= high or (size > low and (was == name or fit < 1 and under_way == 0)) then
      fit, held = 0, name
    elseif fit < 1 and under_way == 0 then
      fit = 1 -- however low the mark is, one page at a time goes through
    end
    room = math.min(room, math.max(0, fit))
  end
  local past = redis.call("HMGET", KEYS[8], "done", "submitted")
  local brings = math.max(1, tonumber(past[2] or 0) / math.max(1, tonumber(past[1] or 0)))
  local at = 11
  for name in string.gmatch(ARGV[11], "[^,]+") do
    local size = redis.call("XLEN", KEYS[at]) + redis.call("XLEN", KEYS[at + 1]) + redis.call("ZCARD", KEYS[at + 2])
    keep_below(name, size, tonumber(ARGV[7]), tonumber(ARGV[8]), brings)
    at = at + 3
  end
  keep_below("items", redis.call("XLEN", KEYS[10]), tonumber(ARGV[9]), tonumber(ARGV[10]), 1)
  if held ~= was then
    -- A server that is full may refuse this; then it is said the next time.
    if held then redis.pcall("HSET", control, "held", held) else redis.pcall("HDEL", control, "held") end
  end
  if held then answer[3] = "held:" .. held end
  return room
end

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
  if #answer >= FIRST or used then
    answer[1] = redis.call("ZCARD", requests)
    if #answer < FIRST then answer[2] = 1 end
    return answer
  end
end

-- Work that drains the pipeline makes room and goes on when there is none. What fills it is refused here by a server that
-- is full: HSETNX may take memory, if only the first time.
if ARGV[6] == "1" then
  although_full(leased)
elseif want > 0 then
  redis.call("HSETNX", reports, worker .. ":lease", 0)
end

local due = redis.call("ZRANGEBYSCORE", delayed, "-inf", now, "LIMIT", 0, want)
for _, member in ipairs(due) do
  local job, _, priority = parse(string.sub(member, 9))
  place(requests, KEYS[9], job, member, priority, score)
end
if #due > 0 then redis.call("ZREM", delayed, unpack(due)) end

local room = math.huge
if rule[1] ~= "1" and want > 0 and (ARGV[7] ~= "0" or ARGV[9] ~= "0") then
  room = room_below_marks()
  -- What it waits for may change at any time.
  if room < want then answer[2] = room > 0 and 250 or 1000 end
end
local state = redis.call("HMGET", site, "next_us", "paused_until")
local rate = tonumber(rule[2] or "")
if rate and rate >= 0 and rate < math.huge then interval = rate > 0 and 1e6 / rate or 0 end
want = math.min(want, room)
if rule[1] == "1" then
  want = 0
elseif state[2] and tonumber(state[2]) > now then
  answer[2] = tonumber(state[2]) - now
  want = 0
elseif interval > 0 and want > 0 then
  -- A slot every `interval`; at most a tenth of a second's worth (and always one) may be taken ahead of the clock.
  local us = now * 1000
  local next_us = math.max(tonumber(state[1] or 0), us)
  local slots = math.floor((us + 100000 - next_us) / interval)
  if slots < 1 and next_us <= us then slots = 1 end
  local waiting = redis.call("ZCARD", requests)
  want = math.max(0, math.min(want, slots, waiting))
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
