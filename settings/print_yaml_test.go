package settings

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"trunkline/internal/setting"
)

func TestPrintSetsTheSameAgain(t *testing.T) {
	s := Default()
	s.Kafka.TopicPrefix = "123" // these look like other types
	s.Redis.Username = "true"
	s.Redis.KeyPrefix = "~"
	s.DrainTimeout = 90 * time.Minute
	s.Tracing.Sample = 1
	s.Fanout.QueueBytes = 1<<20 + 1
	s.Kafka.Brokers = []string{"a:1", "[::1]:2"}
	s.API.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	s.API.AllowedOrigins = []string{"https://x"}
	s.AIProvider.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	var out bytes.Buffer
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}

	again := &Settings{}
	if problems := newTree(again).readYAML("printed", out.Bytes()); len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, &out)
	}
	if !reflect.DeepEqual(s, again) {
		t.Errorf("%s\ngot  %+v\nwant %+v", &out, again, s)
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	s := Default()
	s.MasterKeys.Value, s.DemoPassword, s.Kafka.SASL.Password, s.Redis.Password = "hush1", "hush2", "hush3", "hush4"
	s.Database.URL = "postgres://hush5:hush6@db.example:5432/trunkline?sslpassword=hush7"
	s.Recordings.URL = "s3://hush8:hush9@s3.example:9000/calls?tls=false"
	var printed, logged bytes.Buffer
	if err := s.Print(&printed); err != nil {
		t.Fatal(err)
	}

	log := slog.New(slog.NewJSONHandler(&logged, nil))
	log.Info("x", "key", s.MasterKeys.Value, "url", s.Database.URL)
	for _, shown := range []string{printed.String(), logged.String(),
		fmt.Sprintf("%v %+v %v %s", s.Redis, s.Database, s.Recordings, s.DemoPassword)} {
		if strings.Contains(shown, "hush") {
			t.Errorf("a secret is shown: %s", shown)
		}
	}

	if !strings.Contains(printed.String(), "postgres://********@db.example:5432/trunkline?********") {
		t.Errorf("the database's address is gone: %s", &printed)
	}
	if got := setting.URL("host=db password=hush").String(); got != "********" {
		t.Errorf("what is no URL came out as %q", got)
	}
}
