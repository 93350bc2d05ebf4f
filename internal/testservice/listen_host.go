package testservice

import (
	"cmp"
	"net"
	"os"
	"strconv"
)

const loopbackHost = "127.0.0.1"

// listenHost is the address of the shared Kafka, Redis and PostgreSQL: loopback, or that of
// TRUNKLINE_TEST_HOST in a network namespace of its own, where PostgreSQL trusts everybody.
func listenHost() string { return cmp.Or(os.Getenv("TRUNKLINE_TEST_HOST"), loopbackHost) }

func hostPort(port int) string { return net.JoinHostPort(listenHost(), strconv.Itoa(port)) }
