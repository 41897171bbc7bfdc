-- due: the boards to be looked at now, those of larger priority first; and a sign of life of who asks.
-- KEYS 1 looks root  2 schedule  3 boards  4 schedule stats  5 dispatchers  6 jobs root,
--      of the stage that scans: 7 tasks  8 express  9 requests  10 leases  11 delayed
-- ARGV dispatcher, ms after which a silent one is forgotten, stage, stage it hands down to, threshold, want
-- Returns {now, boards to be looked at, ms until the next look (-1 = none)}, then for up to `want` of them: id, due (ms, ""
--         = not at all), entry, 1 if its last scan is under way, what that handed down (-1 = unknown), what of it is dead.
--         If the stage has as much as the threshold allows, none: it could not be dispatched.
-- Twice: says the sign of life again, and counts again that there was no room; else it only reads, unless somebody wrote
-- another priority into an entry by hand: then the board's look moves to where it belongs.
local looks, schedule, boards, stats, dispatchers, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, target, threshold, want = ARGV[3], ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local now = now_ms()

although_full(stats)
redis.call("ZREMRANGEBYSCORE", dispatchers, "-inf", now - tonumber(ARGV[2]))
redis.call("ZADD", dispatchers, now, ARGV[1])

local waiting, next_look = 0, nil
local priorities = redis.call("ZREVRANGE", looks, 0, -1)
for _, priority in ipairs(priorities) do
  waiting = waiting + redis.call("ZCOUNT", looks .. ":" .. priority, "-inf", now)
  local first = redis.call("ZRANGEBYSCORE", looks .. ":" .. priority, "(" .. now, "+inf", "WITHSCORES", "LIMIT", 0, 1)[2]
  if first then next_look = math.min(next_look or math.huge, tonumber(first)) end
end
local answer = { now, waiting, next_look and math.max(1, math.ceil(next_look - now)) or -1 }
if waiting == 0 then return answer end

local queued = board.queued(KEYS[7], KEYS[8], KEYS[9], KEYS[10], KEYS[11])
if queued >= threshold then
  if redis.call("ZCOUNT", schedule, "-inf", now) > 0 then redis.call("HINCRBY", stats, "skipped_full", 1) end
  return answer
end

local function look_at(id, priority)
  local entry = redis.call("HGET", boards, id) or ""
  local body = board.read(entry)
  if board.priority_of(body) ~= priority then
    board.forget_look(looks, priority, id)
    board.plan_look(looks, board.priority_of(body), id, now)
  end
  local last = type(body.last) == "table" and body.last or {}
  local open, brought, dead = board.books(jobs_root, tostring(last.job or ""), stage, target)
  local due = redis.call("ZSCORE", schedule, id) or ""
  -- With nothing in the whole stage no scan is under way, whatever a job's books say.
  for _, value in ipairs({ id, due, entry, open > 0 and queued > 0 and 1 or 0, brought, dead }) do
    answer[#answer + 1] = value
  end
  want = want - 1
end

for _, priority in ipairs(priorities) do
  if want <= 0 then break end
  local ids = redis.call("ZRANGEBYSCORE", looks .. ":" .. priority, "-inf", now, "LIMIT", 0, want)
  for _, id in ipairs(ids) do look_at(id, priority) end
end
return answer
