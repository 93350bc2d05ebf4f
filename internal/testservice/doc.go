// Package testservice gives tests a real Apache Kafka, Redis, PostgreSQL and
// RabbitMQ, and a real S3-compatible store.
// Only _test files and its own services command import it.
//
// For each service it takes the first of: an address in the environment
// (TRUNKLINE_TEST_KAFKA, TRUNKLINE_TEST_REDIS, TRUNKLINE_TEST_POSTGRES,
// TRUNKLINE_TEST_AMQP), a Docker engine through testcontainers-go, a local install that it starts
// itself. It says which once per test binary. Where none can be had, the test
// is skipped, loudly; with CI=true it fails instead. The S3 store is
// TRUNKLINE_TEST_S3 (s3://KEY:SECRET@host:port), or else built from the module
// .ci/s3 into ~/.cache/trunkline: a minute or two, once. RedisCluster is
// TRUNKLINE_TEST_REDIS_CLUSTER, or else a local install.
//
// Kafka, Redis, RedisCluster, Postgres, RabbitMQ and S3 are shared by the tests of a binary (and, under
// the services command, by all binaries), so a test names its topics and keys
// with Prefix and gets a database of its own. KafkaCluster, OwnManagedKafka, OwnRedis,
// OwnSecureRedis, OwnRedisSentinel, OwnPostgres, OwnRabbitMQ and OwnS3 are a local install of the test's own, to be killed and
// paused.
//
// Everything listens on loopback. Each process has one goroutine, locked to
// the thread that forked it, which waits for it: the kernel ends the process
// when that thread ends, so a server never outlives the test binary. A test
// that looks for leaked goroutines ignores Goroutine. Data lives in temporary
// folders named after the owner's pid; the next start removes those whose
// owner is gone.
//
// TRUNKLINE_TEST_KAFKA_VERSION chooses the Apache Kafka of a local install or
// a container (4.1.0 unless set; 3.9.1 is known to work too).
// TRUNKLINE_KAFKA_HOME names the folder whose libs/ holds the jars, or is to
// hold them; it is a folder under ~/.cache/trunkline unless set.
package testservice
