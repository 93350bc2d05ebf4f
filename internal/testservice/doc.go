// Package testservice provides tests with a real Apache Kafka, Redis, PostgreSQL and
// RabbitMQ, and a real S3-compatible store. Only _test files and its own services command
// import it.
//
// For each service it uses the first that is available: an address in the environment
// (TRUNKLINE_TEST_KAFKA, TRUNKLINE_TEST_REDIS, TRUNKLINE_TEST_POSTGRES, TRUNKLINE_TEST_AMQP), a
// Docker engine through testcontainers-go, or a local install that it starts itself. It logs the
// choice once per test binary. Without any of them the test is skipped with a message; with
// CI=true it fails. The S3 store is TRUNKLINE_TEST_S3 (s3://KEY:SECRET@host:port), or else built
// from the module .ci/s3 into ~/.cache/trunkline: once, in a minute or two. RedisCluster is
// TRUNKLINE_TEST_REDIS_CLUSTER, or else a local install.
//
// The tests of a binary share Kafka, Redis, RedisCluster, Postgres, RabbitMQ and S3 (under the
// services command, all binaries do), so a test names its topics and keys with Prefix and gets
// its own database. KafkaCluster, OwnManagedKafka, OwnRedis, OwnSecureRedis, OwnRedisSentinel,
// OwnPostgres, OwnRabbitMQ and OwnS3 start a local install for one test, which may kill and pause
// it.
//
// All services listen on loopback, or where TRUNKLINE_TEST_HOST says. Each process has one
// goroutine, locked to the thread that forked it, which waits for its end: the kernel ends the
// process when that thread ends, so a server never outlives the test binary. A test that checks
// for leaked goroutines ignores Goroutine. Data is in temporary folders named after the pid of the
// owner; the next start removes those of ended owners.
//
// TRUNKLINE_TEST_KAFKA_VERSION selects the Apache Kafka of a local install or a container
// (default 4.1.0; 3.9.1 is known to work too). TRUNKLINE_KAFKA_HOME is the folder whose libs/
// holds the jars, or receives them (default: a folder under ~/.cache/trunkline).
package testservice
