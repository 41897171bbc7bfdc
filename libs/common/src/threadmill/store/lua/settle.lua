-- settle: a store has the items of these entries; what every group has settled leaves the stream.
-- KEYS 1 items  2 items stats  3 items dead
-- ARGV group, n, then n times: entry id, number of items; then per item no store could take: entry id, error, bytes
-- Returns how many entries were settled now.
-- Twice: XACK answers 0 for what was settled before, and those do not count again.
local items, stats, dead, group, n = KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2])
-- The stream was deleted meanwhile, and the group with it: nothing is pending.
if redis.call("EXISTS", items) == 0 then return 0 end
local settled, counted, fresh = 0, 0, {}
for i = 3, 2 + 2 * n, 2 do
  if redis.call("XACK", items, group, ARGV[i]) == 1 then
    settled = settled + 1
    counted = counted + tonumber(ARGV[i + 1])
    fresh[ARGV[i]] = true
  end
end
for i = 3 + 2 * n, #ARGV, 3 do
  local id, problem, bytes = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if fresh[id] then redis.call("XADD", dead, "*", "group", group, "entry", id, "error", problem, "bytes", bytes) end
end
if counted > 0 then redis.call("HINCRBY", stats, "settled:" .. group, counted) end

-- With one group an entry goes as soon as it is settled, whatever is pending before it.
local groups = redis.call("XINFO", "GROUPS", items)
if #groups == 1 then
  for id in pairs(fresh) do redis.call("XDEL", items, id) end
end
-- Otherwise once it lies before what every group has delivered and settled. With one group this removes what waited for
-- another that is no longer there.
local oldest
for _, info in ipairs(groups) do
  local name, delivered
  for i = 1, #info, 2 do
    if info[i] == "name" then name = info[i + 1] end
    if info[i] == "last-delivered-id" then delivered = info[i + 1] end
  end
  local pending = redis.call("XPENDING", items, name)
  local waits = tonumber(pending[1]) > 0
  local ms, seq = string.match(waits and pending[2] or delivered, "^(%d+)-(%d+)$")
  local keep = { tonumber(ms), tonumber(seq) + (waits and 0 or 1) }
  if not oldest or keep[1] < oldest[1] or (keep[1] == oldest[1] and keep[2] < oldest[2]) then oldest = keep end
end
if oldest then redis.call("XTRIM", items, "MINID", string.format("%.0f-%.0f", oldest[1], oldest[2])) end
return settled
