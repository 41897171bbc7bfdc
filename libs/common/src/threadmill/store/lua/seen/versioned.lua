-- For tasks: an id is new again when its version has moved; the version known before is the second result.
-- Without a version, an id that is known is known. P.buckets hashes, small enough to stay listpacks.
return {
  add = function(root, run, id, version)
    local bucket = 0
    for i = math.max(1, #id - 7), #id do bucket = (bucket * 31 + string.byte(id, i)) % P.buckets end
    local part = root .. ":v:" .. bucket
    local known = redis.call("HGET", part, id)
    if known and (known == version or version == "") then return false, known end
    redis.call("HSET", part, id, version)
    return true, known or ""
  end,
  over = function(root, run) end,
}
