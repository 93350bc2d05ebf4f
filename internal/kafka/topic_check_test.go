package kafka

import (
	"strings"
	"testing"

	"trunkline/event/topics"
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
