package chart

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRefused checks that values that cannot work are refused before the installation, with
// advice.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ values, says string }{
		"a key that does not exist":     {`fanuot: {}`, "fanuot"},
		"a role that does not exist":    {`{mode: cluster, components: {api: {roles: [apii]}}}`, "roles"},
		"a secret in the settings":      {`settings: {redis: {password: x}}`, "password"},
		"headers in the settings":       {`settings: {tracing: {headers: a=b}}`, "headers"},
		"a setting that is the chart's": {`settings: {drain_timeout: 5s}`, "drain_timeout"},
		"no Kafka":                      {`mode: cluster`, "settings.kafka.brokers"},
		"no Redis": {`{mode: cluster, settings: {kafka: {brokers: [a:1]}}}`,
			"settings.redis.address"},
		"a client secret in the settings": {`settings: {kafka: {sasl: {oauth: {client_secret: x}}}}`,
			"client_secret"},
		"a Sentinel password in the settings": {`settings: {redis: {sentinel: {password: x}}}`, "password"},
		"Sentinels, and no database": {`{mode: cluster, settings: {kafka: {brokers: [a:1]}, redis: {sentinel: {addresses: ["b:1"], master: m}}}}`,
			"database.url among secrets"},
		"a Redis Cluster, and no database": {`{mode: cluster, settings: {kafka: {brokers: [a:1]}, redis: {cluster_addresses: ["b:1"]}}}`,
			"database.url among secrets"},
		"no database": {`{mode: cluster, settings: {kafka: {brokers: [a:1]}, redis: {address: "b:1"}}}`,
			"database.url among secrets"},
		"a certificate for each pod": {`{mode: cluster, settings: {kafka: {brokers: [a:1]}, redis: {address: "b:1"}}, secrets: [` +
			`{setting: database.url, secret: s, key: k}, {setting: master_key, secret: s, key: k}, {setting: recordings.url, secret: s, key: k}]}`,
			"tls.mode"},
		"a Certificate without issuer": {`tls: {mode: certManager}`, "issuerRef"},
		"a Secret without name":        {`tls: {mode: secret}`, "tls.secretName"},
		"an Ingress without host":      {`ingress: {enabled: true}`, "ingress.host"},
	} {
		if _, err := render(t, []byte(c.values)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something about %s", name, err, c.says)
		}
	}
}

// TestNoSecretIsInlined renders the chart with a Secret for each secret setting: the objects must
// refer to the Secrets and contain no secret.
func TestNoSecretIsInlined(t *testing.T) {
	r, err := render(t, readValues(t, "production"))
	if err != nil {
		t.Fatal(err)
	}

	if strings.Contains(r.text, "kind: Secret\n") {
		t.Error("the chart makes a Secret")
	}

	var set struct {
		Secrets []struct{ Setting, Secret string }
	}
	if err := yaml.Unmarshal(readValues(t, "production"), &set); err != nil {
		t.Fatal(err)
	}

	for _, secret := range set.Secrets {
		name := "TRUNKLINE_" + strings.ToUpper(strings.ReplaceAll(secret.Setting, ".", "_"))
		if !strings.Contains(r.text, name+"_FILE\n") || strings.Contains(r.text, name+"\n") {
			t.Errorf("%s does not come from a file", secret.Setting)
		}
	}
}
