package dialect

import (
	"net/http"
	"testing"
)

func TestTheModelIsInTheAddressOnce(t *testing.T) {
	c := Config{Session: []byte(`{"model":"gpt realtime"}`)}
	for address, want := range map[string]string{
		"wss://api.openai.com/v1/realtime":              "wss://api.openai.com/v1/realtime?model=gpt+realtime",
		"wss://api.openai.com/v1/realtime?model=other":  "wss://api.openai.com/v1/realtime?model=other",
		"wss://x.openai.azure.com/openai/v1/realtime?a": "wss://x.openai.azure.com/openai/v1/realtime?a=&model=gpt+realtime",
	} {
		header := http.Header{"Authorization": {"Bearer own"}}
		c.Secret = "sk"
		if got := prepareOpenAI(c, address, header); got != want || header.Get("Authorization") != "Bearer own" {
			t.Errorf("%s: got %s, %v", address, got, header)
		}
	}
}
