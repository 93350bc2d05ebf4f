package testservice

import (
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"trunkline/internal/freeport"
)

// ManagedKafka is an Apache Kafka for one test, with the listeners of managed clusters.
type ManagedKafka struct {
	CA     *CA
	Mutual string // host:port of the listener that requires a client certificate
	Token  string // host:port of the listener with TLS and OAUTHBEARER, for the tokens of Sign
	signer *ecdsa.PrivateKey
}

// managed are the fields of server.properties.tmpl for ManagedKafka.
type managed struct {
	*ManagedKafka
	KeyStore string // private key and certificate, PEM
	Keys     string // public keys of the tokens, JWKS
}

// Audience is the audience that tokens must have.
func (*ManagedKafka) Audience() string { return "kafka" }

// KeysURL is the address of the tokens' public keys.
func (m *managed) KeysURL() string { return "file://" + m.Keys }

const tokenKey = "test"

// OwnManagedKafka starts one broker for this test, from the local install.
func OwnManagedKafka(t testing.TB) *ManagedKafka {
	t.Helper()
	skipIfShort(t)
	home, err := findKafkaHome(t.Context())
	skipOrFail(t, err)
	dir, err := newFolder("managed")
	must(t, err)
	var brokers []*broker
	t.Cleanup(func() { must(t, errors.Join(stopBrokers(brokers), os.RemoveAll(dir))) })
	ports, err := freeport.Find(2)
	must(t, err)
	kafka := &ManagedKafka{CA: NewCA(t), Mutual: hostPort(ports[0]), Token: hostPort(ports[1]), signer: newKey(t)}
	listeners := &managed{ManagedKafka: kafka, KeyStore: filepath.Join(dir, "keystore.pem"),
		Keys: filepath.Join(dir, "jwks.json")}
	certFile, keyFile := kafka.CA.Pair(t, "broker")
	cert, err := os.ReadFile(certFile)
	must(t, err)
	key, err := os.ReadFile(keyFile)
	must(t, err)
	must(t, os.WriteFile(listeners.KeyStore, append(key, cert...), 0o600))
	point, err := kafka.signer.PublicKey.Bytes() // 4, x, y
	must(t, err)
	keys, err := json.Marshal(map[string]any{"keys": []map[string]string{{
		"kty": "EC", "crv": "P-256", "kid": tokenKey, "use": "sig", "alg": "ES256",
		"x": base64.RawURLEncoding.EncodeToString(point[1:33]), "y": base64.RawURLEncoding.EncodeToString(point[33:]),
	}}})
	must(t, err)
	must(t, os.WriteFile(listeners.Keys, keys, 0o600))
	brokers, err = startBrokers(t.Context(), home, dir, 1, "", listeners)
	must(t, err)

	return kafka
}

// Sign returns a token for subject with the given lifetime.
func (m *ManagedKafka) Sign(t testing.TB, subject string, lifetime time.Duration) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"sub": subject, "aud": m.Audience(), "iat": time.Now().Unix(), "exp": time.Now().Add(lifetime).Unix(),
	})
	token.Header["kid"] = tokenKey
	signed, err := token.SignedString(m.signer)
	must(t, err)
	return signed
}
