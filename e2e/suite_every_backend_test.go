package e2e

import (
	"testing"
	"time"
)

func TestEmbedded(t *testing.T) {
	t.Parallel()
	began := time.Now()
	program(t)
	built := time.Now()
	c := embeddedCluster(t, "TRUNKLINE_KAFKA_PARTITIONS", manyPartitions)
	t.Logf("built in %v, ready with an API key in %v", built.Sub(began), time.Since(built))
	suite(t, c)
}

func TestRealRolesApart(t *testing.T) {
	t.Parallel()
	suite(t, splitRolesCluster(t, "TRUNKLINE_KAFKA_PARTITIONS", manyPartitions))
}

// suite holds the tests that run on every backend. Its cases share one cluster, as users do; each
// has its own accounts.
func suite(t *testing.T, c *cluster) {
	t.Run("an event arrives everywhere byte for byte", c.testEventArrives)
	t.Run("JWKS, logins and both audiences", c.testLogins)
	t.Run("filters and sub-accounts", c.testFilters)
	t.Run("commands take effect beside the server", c.testCommandsTakeEffect)
	t.Run("captured FreeSWITCH sessions", c.testFreeSWITCH)
	t.Run("captured FreeSWITCH call records", c.testCallRecords)
	t.Run("raw topic without headers", c.testRawTopic)
	t.Run("kcat", c.testKcat)
	t.Run("dead letters are retried", c.testDeadLetters)
	t.Run("resume", c.testResume)
	t.Run("refused places", c.testRefusedPlaces)
	t.Run("bad input over HTTP hurts nobody", c.testBadBodies)
	t.Run("poison on the raw topic hurts nobody", c.testPoison)
	t.Run("bad and forged tokens", c.testForgedTokens)
	t.Run("connection counts in health and stats", c.testConnectionCounts)
}
