-- due: the boards to be looked at now, those of larger priority first; and a sign of life of who asks.
-- KEYS 1 looks  2 schedule  3 boards  4 schedule stats  5 dispatchers  6 jobs root,
--      of the stage that scans: 7 tasks  8 express  9 requests  10 leases  11 delayed
-- ARGV dispatcher, ms after which a silent one is forgotten, stage, stage it hands down to, threshold, want
-- Returns {now, boards to be looked at, ms until the next look (-1 = none)}, then for up to `want` of them: id, due (ms, ""
--         = not at all), entry, 1 if its last scan is under way, what that handed down (-1 = unknown), what of it is dead.
--         If the stage has as much as the threshold allows, none: it could not be dispatched.
-- Twice: says the sign of life again, and counts again that there was no room; else it only reads.
local looks, schedule, boards, stats, dispatchers, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, target, threshold, want = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
-- Where more are due, the largest priorities are looked for among those that have waited longest.
local MOST = 5000
local now = now_ms()

although_full(stats)
redis.call("ZREMRANGEBYSCORE", dispatchers, "-inf", now - tonumber(ARGV[2]))
redis.call("ZADD", dispatchers, now, ARGV[1])

local waiting = redis.call("ZCOUNT", looks, "-inf", now)
local next_look = redis.call("ZRANGEBYSCORE", looks, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
local answer = { now, waiting, next_look and math.max(1, math.ceil(tonumber(next_look) - now)) or -1 }
if waiting == 0 then return answer end

local queued = board.queued(KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11])
if queued >= threshold then
  if redis.call("ZCOUNT", schedule, "-inf", now) > 0 then redis.call("HINCRBY", stats, "skipped_full", 1) end
  return answer
end

local ids = redis.call("ZRANGEBYSCORE", looks, "-inf", now, "LIMIT", 0, waiting > want and MOST or want)
local found = {}
for at, id in ipairs(ids) do
  local entry = redis.call("HGET", boards, id) or ""
  local read, body = pcall(cjson.decode, entry)
  if not read or type(body) ~= "table" then body = {} end
  local last = type(body.last) == "table" and body.last or {}
  found[at] = { at = at, id = id, entry = entry, priority = tonumber(body.priority) or 0, job = tostring(last.job or "") }
end
table.sort(found, function(one, other)
  if one.priority ~= other.priority then return one.priority > other.priority end
  return one.at < other.at
end)
for at = 1, math.min(want, #found) do
  local each = found[at]
  local open, brought, dead = board.books(jobs_root, each.job, stage, target)
  local due = redis.call("ZSCORE", schedule, each.id) or ""
  -- With nothing in the whole stage no scan is under way, whatever a job's books say.
  for _, value in ipairs({ each.id, due, each.entry, open > 0 and queued > 0 and 1 or 0, brought, dead }) do
    answer[#answer + 1] = value
  end
end
return answer
