package kafka

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"testing"

	"trunkline/internal/kafka/credentials"
)

// TestMSKLogin verifies the signature as AWS documents it (Signature Version 4,
// query parameters), for there is no MSK here.
func TestMSKLogin(t *testing.T) {
	const region, key, secret, session = "eu-central-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "session/token+="
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": session,
		"AWS_REGION":      "us-west-2",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}

	messages := make(chan string, 100)
	settings := tokenBroker(t, func(message string) (int64, string) {
		messages <- message
		return 900_000, ""
	})

	settings.SASL = credentials.Settings{Mechanism: "aws-msk-iam", AWSRegion: region}
	if err := openCluster(t, settings).Ping(t.Context()); err != nil {
		t.Fatal(err)
	}

	message := <-messages
	token, ok := strings.CutPrefix(message, "n,,\x01auth=Bearer ")
	token, closed := strings.CutSuffix(token, "\x01\x01")
	text, err := base64.RawURLEncoding.DecodeString(token)
	if !ok || !closed || err != nil {
		t.Fatalf("message %q: %v", message, err)
	}

	signed, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}

	query := signed.Query()
	signature := query.Get("X-Amz-Signature")
	query.Del("X-Amz-Signature")
	query.Del("User-Agent") // added after the signature
	at := query.Get("X-Amz-Date")

	scope := strings.Join([]string{at[:8], region, "kafka-cluster", "aws4_request"}, "/")
	for name, want := range map[string]string{
		"Action": "kafka-cluster:Connect", "X-Amz-Algorithm": "AWS4-HMAC-SHA256", "X-Amz-Expires": "900",
		"X-Amz-Credential": key + "/" + scope, "X-Amz-Security-Token": session, "X-Amz-SignedHeaders": "host",
	} {
		if got := query.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	host := "kafka." + region + ".amazonaws.com"
	if signed.Scheme != "https" || signed.Host != host || signed.Path != "/" {
		t.Errorf("signed for %s", signed)
	}

	hash := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	canonical := strings.Join([]string{
		"GET", "/", strings.ReplaceAll(query.Encode(), "+", "%20"), "host:" + host, "", "host", hash(""),
	}, "\n")
	toSign := strings.Join([]string{"AWS4-HMAC-SHA256", at, scope, hash(canonical)}, "\n")
	derived := []byte("AWS4" + secret)

	for _, part := range append(strings.Split(scope, "/"), toSign) {
		mac := hmac.New(sha256.New, derived)
		mac.Write([]byte(part))
		derived = mac.Sum(nil)
	}

	if want := hex.EncodeToString(derived); signature != want {
		t.Errorf("signature %s, want %s", signature, want)
	}
}

func TestMSKNeedsARegion(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		t.Setenv(name, value)
	}

	settings := DefaultSettings("127.0.0.1:1")
	settings.TLS.Enabled, settings.SASL = true, credentials.Settings{Mechanism: "aws-msk-iam"}
	_, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "kafka.sasl.aws_region") {
		t.Errorf("got %v", err)
	}
}
