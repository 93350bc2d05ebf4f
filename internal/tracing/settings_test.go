package tracing

import (
	"reflect"
	"testing"
)

func TestSettingsNameTheCollectorAndItsHeaders(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces",
		"https://c/otlp/v1/traces": "https://c/otlp/v1/traces",
	} {
		got, err := (Settings{Endpoint: endpoint}).URL()
		if err != nil || got != want {
			t.Errorf("%s is sent to %s, %v", endpoint, got, err)
		}
	}

	got, err := (Settings{Headers: "authorization=Basic%20dTpw==, x-tenant=a%2Cb"}).HeaderMap()
	if err != nil || !reflect.DeepEqual(got, map[string]string{"Authorization": "Basic dTpw==", "X-Tenant": "a,b"}) {
		t.Errorf("%q, %v", got, err)
	}
}
