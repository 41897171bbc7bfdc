-- For tasks: an id is new again when its version has moved; the second result is the version it was done at before that.
-- Without a version, an id that is known is known. P.buckets hashes, small enough to stay listpacks.
--
-- value = version, or byte 31 + state + version once the task was done: outcome (d, g; D, G at an earlier version), when
-- (s, 4 bytes).
-- With a limit (0 switches it off) an id is forgotten when it was not met for P.age_s, when its bucket's share of P.size
-- newer ones came, or when it was turned away P.hits times. Then byte 30 stands for byte 31, and the state goes on with
-- when it was last met (s, 4 bytes) and how often it was turned away since it was new (2 bytes).
local ROLLING = P.age_s > 0 or P.size > 0 or P.hits > 0

local function read(value)
  local kind = string.byte(value, 1)
  if kind == 31 then
    local outcome, at = struct.unpack(">c1I4", value, 2)
    return string.sub(value, 7), outcome, at, 0, 0
  elseif kind == 30 then
    local outcome, at, met, hits = struct.unpack(">c1I4I4I2", value, 2)
    return string.sub(value, 13), outcome, at, met, hits
  end
  return value, "-", 0, 0, 0
end

local function write(part, id, version, outcome, at, met, hits)
  local head = ""
  if ROLLING then
    head = "\30" .. struct.pack(">c1I4I4I2", outcome, at, met, math.min(hits, 65535))
  elseif outcome ~= "-" then
    head = "\31" .. struct.pack(">c1I4", outcome, at)
  end
  redis.call("HSET", part, id, head .. version)
end

local function part_of(root, id)
  local bucket = 0
  for i = math.max(1, #id - 7), #id do bucket = (bucket * 31 + string.byte(id, i)) % P.buckets end
  return root .. ":v:" .. bucket
end

-- Those not met for too long go; if the bucket is too large even so, the one met longest ago does. A bucket is looked
-- through when it is too large, and at one of sixteen additions.
local function forget(part, now)
  local most = P.size > 0 and math.ceil(P.size / P.buckets) or math.huge
  local size = redis.call("HLEN", part)
  if size <= most and (P.age_s == 0 or now_ms() % 16 > 0) then return end
  local oldest, oldest_met
  local fields = redis.call("HGETALL", part)
  for i = 1, #fields, 2 do
    local _, _, _, met = read(fields[i + 1])
    if P.age_s > 0 and met <= now - P.age_s then
      redis.call("HDEL", part, fields[i])
      size = size - 1
    elseif not oldest or met < oldest_met then
      oldest, oldest_met = fields[i], met
    end
  end
  if size > most then redis.call("HDEL", part, oldest) end
end

return {
  add = function(root, run, id, version)
    version = string.gsub(version, "^[\30\31]+", "")
    local part, now = part_of(root, id), ROLLING and math.floor(now_ms() / 1000) or 0
    local value = redis.call("HGET", part, id)
    if not value then
      if ROLLING then forget(part, now) end
      write(part, id, version, "-", 0, now, 0)
      return true, ""
    end
    local known, outcome, at, met, hits = read(value)
    local forgotten = P.age_s > 0 and met <= now - P.age_s
    if known == version or version == "" then
      if ROLLING then
        forgotten = forgotten or (P.hits > 0 and hits >= P.hits)
        -- When it was met is kept to a sixteenth of the age, so that most of what is known costs no write.
        if forgotten or P.hits > 0 or P.size > 0 or met <= now - P.age_s / 16 then
          write(part, id, known, outcome, at, now, forgotten and 0 or hits + 1)
        end
      end
      return forgotten, forgotten and "" or known
    end
    -- Only if the task was done at the version known before is it known that all of that was collected.
    write(part, id, version, string.upper(outcome), at, now, 0)
    return true, outcome == "d" and not forgotten and known or ""
  end,
  over = function(root, run) end,
  -- The task's last page is done: as what, and when.
  finish = function(root, id, outcome)
    local part = part_of(root, id)
    local value = redis.call("HGET", part, id)
    if not value then return end
    local version, _, _, met, hits = read(value)
    write(part, id, version, outcome, math.floor(now_ms() / 1000), met, hits)
  end,
  look = function(root, id)
    local value = redis.call("HGET", part_of(root, id), id)
    if not value then return {} end
    local version, outcome, at = read(value)
    return { version, outcome == "-" and "" or outcome, at }
  end,
  -- What was submitted will not be done: the version it was done at before that is known again; if there is none, the id is
  -- forgotten. What was forced at the version it was done at changes nothing.
  take_back = function(root, id, known, forced)
    local part = part_of(root, id)
    local value = redis.call("HGET", part, id)
    if not value then return end
    local _, outcome, at, met, hits = read(value)
    if known ~= "" then
      write(part, id, known, string.lower(outcome), at, met, hits)
    elseif not (forced and string.find(outcome, "%l")) then
      redis.call("HDEL", part, id)
    end
  end,
}
