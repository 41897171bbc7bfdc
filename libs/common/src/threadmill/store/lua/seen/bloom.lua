-- A scalable Bloom filter (Almeida et al., 2007): layer i holds P.capacity * 2^i ids at error P.error / 2^(i+1), so the
-- whole errs (calls a new id known) with a probability below P.error. Never calls a known id new. Not deletable.
local function shape(layer)
  local capacity = P.capacity * 2 ^ layer
  local err = P.error / 2 ^ (layer + 1)
  local hashes = math.ceil(-math.log(err) / math.log(2))
  local bits = math.ceil(capacity * hashes / math.log(2))
  return capacity, hashes, bits
end

return {
  add = function(root, run, id, version)
    local digest = redis.sha1hex(id)
    local h1, h2 = tonumber(string.sub(digest, 1, 12), 16), tonumber(string.sub(digest, 13, 24), 16)
    local meta = root .. ":bloom"
    local layer = tonumber(redis.call("HGET", meta, "layer") or 0)
    for at = 0, layer do
      local _, hashes, bits = shape(at)
      local known = true
      for i = 1, hashes do
        if redis.call("GETBIT", meta .. ":" .. at, (h1 + i * h2) % bits) == 0 then
          known = false
          break
        end
      end
      if known then return false, "" end
    end
    local capacity, hashes, bits = shape(layer)
    local held = redis.call("HINCRBY", meta, layer, 1)
    for i = 1, hashes do redis.call("SETBIT", meta .. ":" .. layer, (h1 + i * h2) % bits, 1) end
    if held >= capacity then redis.call("HSET", meta, "layer", layer + 1) end
    return true, ""
  end,
  over = function(root, run) end,
}
