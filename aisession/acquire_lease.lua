-- Acquires a lease in KEYS[1], a sorted set of leases scored by their expiry.
-- ARGV: now, the lease's expiry (both Unix ms), its name, the limit of leases.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[1])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[3])
redis.call('PEXPIREAT', KEYS[1], ARGV[2])
return 1
