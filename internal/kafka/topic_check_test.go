package kafka

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

func TestSettingsThatEndangerRecordsAreFound(t *testing.T) {
	good := map[string]string{
		configTimestampType: logAppendTime, configMaxBytes: "1310720", configMinInSync: "2",
		configCleanupPolicy: "delete", configUncleanElection: "false",
	}

	for _, test := range []struct {
		name     string
		replicas int // of the topic; three are possible
		change   map[string]string
		unsafe   bool
		want     string // "": no problem
	}{
		{"as it should be", 3, nil, false, ""},
		{"two replicas, both in sync", 2, nil, false, "has 2 replicas"},
		{"one replica", 1, map[string]string{configMinInSync: "1"}, false, "has 1 replicas"},
		{"acknowledged by one of three", 3, map[string]string{configMinInSync: "1"}, true, "min.insync.replicas=1"},
		{"more in sync than there are", 3, map[string]string{configMinInSync: "4"}, true, "refuses every write"},
		{"compacted", 3, map[string]string{configCleanupPolicy: "compact"}, true, "cleanup.policy=compact"},
		{"unclean election", 3, map[string]string{configUncleanElection: "true"}, true,
			"unclean.leader.election.enable=true"},
		{"small records", 3, map[string]string{configMaxBytes: "1048588"}, true, "max.message.bytes=1048588"},
		{"the producers' clocks", 3, map[string]string{configTimestampType: "CreateTime"}, false,
			"LogAppendTime is better"},
		{"the state, not compacted", 3, nil, true, "cleanup.policy=delete: set it to compact"},
		{"the state, compacted and deleted", 3, map[string]string{configCleanupPolicy: "compact,delete"}, true,
			"cleanup.policy=compact,delete: set it to compact"},
		{"the state as it should be", 3, map[string]string{configCleanupPolicy: "compact"}, false, ""},
		{"a broker that tells nothing", 3,
			map[string]string{configMinInSync: "", configCleanupPolicy: "", configUncleanElection: "",
				configMaxBytes: ""}, false, ""},
	} {
		config := map[string]string{}
		for k, v := range good {
			config[k] = v
		}

		for k, v := range test.change {
			config[k] = v
		}

		spec := topics.Spec{Name: "raw", Config: map[string]string{configTimestampType: logAppendTime}}
		if strings.HasPrefix(test.name, "the state") {
			spec = topics.Spec{Name: "state", Config: map[string]string{configCleanupPolicy: "compact"}}
		}

		problems := checkTopic(spec, TopicInfo{Name: spec.Name, Partitions: 8, ReplicationFactor: test.replicas},
			config, 3)
		if test.want == "" {
			if len(problems) != 0 {
				t.Errorf("%s: %v", test.name, problems)
			}
			continue
		}

		if len(problems) != 1 || problems[0].Unsafe != test.unsafe ||
			!strings.Contains(problems[0].Message, test.want) {
			t.Errorf("%s: %+v", test.name, problems)
		}
	}
}

func TestReplicasAreNotDecidedByWhoIsUpFirst(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	addresses := fake.ListenAddrs()
	for _, id := range []int32{0, 1} {
		if err := fake.RemoveNode(id); err != nil {
			t.Fatal(err)
		}
	}

	open := func(cfg Config) *Cluster {
		c, err := Open(context.Background(), cfg, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}

	spec := []topics.Spec{{Name: "t", Partitions: 1}}
	c := open(Config{Settings: DefaultSettings(addresses...)})
	if err := c.EnsureTopics(t.Context(), spec); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatalf("with one of three brokers up: %v", err)
	}

	for _, id := range []int32{0, 1} {
		if _, _, err := fake.AddNode(id, 0); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.EnsureTopics(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if info := fake.TopicInfo("t"); info.NumReplicas != 3 || *info.Configs[configMinInSync] != "2" {
		t.Errorf("%d replicas, %v", info.NumReplicas, info.Configs)
	}

	settings := DefaultSettings(addresses...)
	settings.ReplicationFactor = 2
	settings.TopicPrefix = "two."
	two := open(Config{Settings: settings})
	if err := two.EnsureTopics(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if info := fake.TopicInfo("two.t"); info.NumReplicas != 2 || *info.Configs[configMinInSync] != "2" {
		t.Errorf("as set: %d replicas, %v", info.NumReplicas, info.Configs)
	}
}

func TestRetentionIsThatOfATopicWithThePrefix(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	for _, prefix := range []string{"", "two."} {
		if err := fake.CreateTopic(prefix+"t", 1, map[string]string{configRetention: "5000"}); err != nil {
			t.Fatal(err)
		}

		settings := DefaultSettings(fake.ListenAddrs()...)
		settings.TopicPrefix = prefix
		c, err := Open(t.Context(), Config{Settings: settings}, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()

		if kept, err := c.Retention(t.Context(), "t"); kept != 5*time.Second || err != nil {
			t.Errorf("with prefix %q: %v, %v", prefix, kept, err)
		}
	}
}

func TestRegisteredBrokersAreCounted(t *testing.T) {
	c, err := Open(t.Context(), Config{Settings: DefaultSettings(testservice.Kafka(t)...)}, nil,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	n, err := c.registeredBrokers(t.Context())
	// each has 5 s for an answer
	for deadline := time.Now().Add(3 * time.Minute); err != nil && time.Now().Before(deadline); {
		n, err = c.registeredBrokers(t.Context())
	}

	if n != 1 || err != nil {
		t.Errorf("%d brokers, %v", n, err) // Kafka before 4.0 has no answer
	}
}
