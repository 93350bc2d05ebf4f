-- Takes one place in every scope, or none.
-- KEYS: one sorted set a scope, from "node|connection|since" to when the place
-- is lost (ms). ARGV: now, until, member, replace (0/1), then the maximum of
-- each scope. Returns the number of the first full scope, 0 when all places
-- are taken, and the members that were sent away.
local now, till, member, replace = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4] == "1"
local evicted = {}
for i, key in ipairs(KEYS) do
  redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
  local most = tonumber(ARGV[4 + i])
  if redis.call("ZCARD", key) >= most and not replace then
    return {i}
  end
end
local result = {0}
for i, key in ipairs(KEYS) do
  local most = tonumber(ARGV[4 + i])
  local over = redis.call("ZCARD", key) - most + 1
  if over > 0 then
    local members = redis.call("ZRANGE", key, 0, -1)
    table.sort(members, function(a, b)
      return tonumber(string.match(a, "|(%d+)$")) < tonumber(string.match(b, "|(%d+)$"))
    end)
    for j = 1, over do
      redis.call("ZREM", key, members[j])
      result[#result + 1] = members[j]
    end
  end
  redis.call("ZADD", key, till, member)
  redis.call("PEXPIRE", key, till - now)
end
return result
