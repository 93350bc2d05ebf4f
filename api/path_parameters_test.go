package api

import (
	"strconv"
	"testing"
)

func TestIDsInThePathArePercentDecoded(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	e.ask(200, "GET", accountsPath+"/d%65mo", h, "", nil)
	e.ask(200, "GET", accountsPath+"/%64%65%6d%6F/users", h, "", nil)
	id := e.createProvider(h).ID
	escaped := "%" + strconv.FormatInt(int64(id[0]), 16) + id[1:]
	e.ask(200, "GET", aiProvidersPath+"/"+escaped, h, "", nil)
	e.ask(202, "POST", "/api/v2/ingest/gener%69c", header{"X-API-Key": e.key}, `{"type":"AGENT_LOGIN"}`, nil)

	for _, path := range []string{accountsPath + "/%2564emo", accountsPath + "/demo%2Fusers", accountsPath + "/%00",
		accountsPath + "/%ff",
		webhooksPath + "/%00", webhooksPath + "/%ff", aiProvidersPath + "/%00", aiProvidersPath + "/a%00%2D",
		keysPath + "/%00", callsPath + "%00"} {
		e.ask(404, "GET", path, h, "", nil)
	}
}
