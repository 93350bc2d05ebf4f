package e2e

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/internal/kafka"
)

// testBadBodies posts a series of bad bodies, each between good records.
func (c *cluster) testBadBodies(t *testing.T) {
	w := c.createAccountAndUser(t, "bodies", "demo")
	n := c.lastChannelNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	key := c.ingestNode.cli(t, "apikey", "create", "--account", "bodies")
	c.awaitKey(t, key)
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	injected := `{"Account-ID":"bodies' OR '1'='1","Type":"AGENT_LOGIN\r\nX-Evil: 1","n":-1}`
	good := record("bodies", -1)
	bad := []struct {
		name, key, format, contentType, body string
		status                               int
	}{
		{"10 MB of one record", key, "svc.cc", typeJSON,
			`{"Account-ID":"bodies","pad":"` + strings.Repeat("x", 10<<20) + `"}`, 413},
		{"40 MB", key, "svc.cc", "application/x-ndjson", strings.Repeat(good+"\n", 40<<20/len(good)), 413},
		{"deep nesting", key, "svc.cc", typeJSON, deep, 400},
		{"deep nesting of arrays", key, "svc.cc", typeJSON, strings.Repeat("[", 100_000), 400},
		{"invalid UTF-8", key, "svc.cc", typeJSON, `{"Account-ID":"bodies","x":"` + "\xff\xfe" + `"}`, 400},
		{"half an object", key, "svc.cc", typeJSON, `{"Account-ID":"bodies"`, 400},
		{"a good line before a bad one", key, "svc.cc", "application/x-ndjson", good + "\n{nope\n", 400},
		{"a number", key, "svc.cc", typeJSON, "17", 400},
		{"an array of numbers", key, "svc.cc", typeJSON, "[" + good + ",17]", 400},
		{"nothing", key, "svc.cc", typeJSON, "", 400},
		{"an unknown format", key, "svc.xx", typeJSON, good, 404},
		{"our own format", key, "trunkline.event", typeJSON, good, 404},
		{"another content type", key, "svc.cc", "text/html", good, 415},
		{"another's account", key, "svc.cc", typeJSON, record("demo", -1), 403},
		{"an account that is SQL", key, "svc.cc", typeJSON, injected, 403},
		{"a key that is SQL", "' OR '1'='1", "svc.cc", typeJSON, good, 401},
		{"an unknown key", "tk_" + strings.Repeat("A", 43), "svc.cc", typeJSON, good, 401},
	}

	for i, b := range bad {
		c.ingestNode.postAccepted(t, key, "svc.cc", typeJSON, record("bodies", i), 1)
		a := c.ingestNode.post(t, b.key, b.format, b.contentType, b.body)
		var reply struct {
			Success *bool  `json:"success"`
			Message string `json:"message"`
		}
		if err := json.Unmarshal(a.body, &reply); err != nil || reply.Success == nil || *reply.Success ||
			reply.Message == "" {
			t.Errorf("%s: the answer is %s", b.name, a)
		}
		if a.status != b.status || a.header.Get("X-Request-ID") == "" {
			t.Errorf("%s: %s, want %d", b.name, a, b.status)
		}
	}

	c.ingestNode.postAccepted(t, key, "svc.cc", typeJSON, record("bodies", len(bad)), 1)
	c.postGzipped(t, key, len(bad)+1)
	if got := numbers(t, s.awaitCount(t, len(bad)+2)); !slices.Equal(got, sequence(0, len(bad)+2)) {
		t.Errorf("the neighbours are %v", got)
	}
}

// postGzipped posts 64 MiB compressed to a small body, which must be refused, and one compressed
// record. A gzip body may have several members; compressing only one of them is cheaper.
func (c *cluster) postGzipped(t *testing.T, key string, number int) {
	t.Helper()
	pack := func(text string) string {
		var packed bytes.Buffer
		writer := gzip.NewWriter(&packed)
		if _, err := writer.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}

		return packed.String()
	}

	header := map[string]string{"X-API-Key": key, "Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
	for body, want := range map[string]int{
		strings.Repeat(pack(strings.Repeat(" ", 1<<20)), 64): 413, pack(record("bodies", number))[:20]: 400,
		pack(record("bodies", number)): 202,
	} {
		if a := c.ingestNode.mustCall(t, http.MethodPost, "/api/v2/ingest/svc.cc", header, body); a.status != want {
			t.Errorf("%d bytes packed: %s, want %d", len(body), a, want)
		}
	}
}

// testPoison produces records that the normalizer cannot process between good records of the same
// partition.
func (c *cluster) testPoison(t *testing.T) {
	w := c.createAccountAndUser(t, "poison", "demo")
	n := c.lastChannelNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	format := func(name string) []kafka.Header { return []kafka.Header{{Key: "format", Value: []byte(name)}} }
	poison := []kafka.Record{
		{Value: []byte("not JSON")},
		{Value: nil},
		{Value: []byte{}},
		{Value: []byte("{\"Account-ID\":\"poison\",\"x\":\"\xff\"}")},
		{Value: []byte(strings.Repeat(`{"a":`, 5_000) + "1" + strings.Repeat("}", 5_000))},
		{Value: []byte(`{"type":"NOPE","account_id":"poison"}`), Headers: format("generic")},
		{Value: []byte(`{"Account-ID":17,"Type":{}}`), Headers: format("svc.cc")},
		{Value: []byte(record("poison", -1)), Headers: format("no.such.format")},
		{Value: []byte(record("nobody' --", -1))},
		{Value: bytes.Repeat([]byte("x"), 900<<10)},
	}
	var records []kafka.Record

	for i, p := range poison {
		p.Key = []byte("poison")
		records = append(records, kafka.Record{Key: []byte("poison"), Value: []byte(record("poison", i))}, p)
	}

	records = append(records, kafka.Record{Key: []byte("poison"), Value: []byte(record("poison", len(poison)))})
	before := len(c.listDeadLetters(t))
	c.produce(t, records...)

	if got := numbers(t, s.awaitCount(t, len(poison)+1)); !slices.Equal(got, sequence(0, len(poison)+1)) {
		t.Errorf("the neighbours are %v", got)
	}

	eventually(t, "a dead letter for each", func() error {
		if n := len(c.listDeadLetters(t)) - before; n != len(poison) {
			return fmt.Errorf("%d for %d", n, len(poison))
		}
		return nil
	})
}

func (c *cluster) testForgedTokens(t *testing.T) {
	n := c.lastChannelNode()
	good := n.login(t, apiPaths, user("alice"))
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(good, &claims)
	if err != nil {
		t.Fatal(err)
	}

	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}

	var served struct {
		Keys []map[string]string `json:"keys"`
	}
	n.readJSON(t, "/.well-known/jwks.json", nil, &served)
	serverKey, err := base64.RawURLEncoding.DecodeString(served.Keys[0]["x"])
	if err != nil {
		t.Fatal(err)
	}

	sign := func(method jwt.SigningMethod, key any, header map[string]any) string {
		token := jwt.NewWithClaims(method, claims)
		token.Header["kid"] = parsed.Header["kid"]
		for name, value := range header {
			token.Header[name] = value
		}

		text, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}

		return text
	}

	parts := strings.Split(good, ".")
	admin := base64.RawURLEncoding.EncodeToString(
		[]byte(`{"aud":"events","sub":"x","account_id":"demo","role":"admin","exp":9999999999}`))
	for name, token := range map[string]string{
		"none":            "",
		"no token":        "nonsense",
		"alg none":        sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil),
		"HMAC of the key": sign(jwt.SigningMethodHS256, serverKey, nil),
		"another key":     sign(jwt.SigningMethodEdDSA, private, nil),
		"a key it brings": sign(jwt.SigningMethodEdDSA, private,
			map[string]any{"jwk": map[string]string{"kty": "OKP", "crv": "Ed25519",
				"x": base64.RawURLEncoding.EncodeToString(public)}}),
		"an unknown kid":    sign(jwt.SigningMethodEdDSA, private, map[string]any{"kid": "../../etc/passwd"}),
		"changed claims":    parts[0] + "." + admin + "." + parts[2],
		"no signature":      parts[0] + "." + parts[1] + ".",
		"a signature's end": good[:len(good)-4],
		"very long":         strings.Repeat("a", 30_000),
	} {
		for _, ask := range []subscription{{paths: apiPaths}, {paths: wsPaths, tokenInQuery: true},
			{paths: apiPaths, sse: true}} {
			ask.token = token
			a := n.mustRefuse(t, ask, http.StatusUnauthorized)
			if a.header != nil && !strings.HasPrefix(a.header.Get("WWW-Authenticate"), "Bearer") {
				t.Errorf("%s: WWW-Authenticate is %q", name, a.header.Get("WWW-Authenticate"))
			}
		}

		if a := n.mustCall(t, http.MethodGet, apiPaths.stats, bearer(token), ""); a.status != http.StatusUnauthorized {
			t.Errorf("stats with %s: %s", name, a)
		}
	}

	n.subscribe(t, subscription{paths: apiPaths, token: good}).close()
}
