package testservice

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/segmentio/kafka-go"
)

// eventually retries: clients notice a killed broker with a delay.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(pollInterval) {
		err = try()
		if err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

func TestSharedKafkaTakesRecords(t *testing.T) {
	client := &kafka.Client{Addr: kafka.TCP(Kafka(t)...), Timeout: startTimeout}
	topic := Prefix(t) + "topic"
	made, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}},
	})
	if err == nil {
		err = made.Errors[topic]
	}
	if err != nil {
		t.Fatal(err)
	}

	eventually(t, "producing", func() error {
		answer, err := client.Produce(t.Context(), &kafka.ProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("value"))}),
		})
		if err != nil {
			return err
		}

		return answer.Error
	})
}

func TestSharedRedisAnswers(t *testing.T) {
	if err := pingRedis(t.Context(), Redis(t)); err != nil {
		t.Fatal(err)
	}
}

func TestEachPostgresIsADatabaseOfItsOwn(t *testing.T) {
	one, two := Postgres(t), Postgres(t)
	for _, at := range []string{one, two} {
		if err := execute(t.Context(), at, "CREATE TABLE same (id int)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestADatabaseIsDroppedThoughItIsInUse(t *testing.T) {
	var at string
	t.Run("uses it", func(t *testing.T) {
		at = Postgres(t)
		conn, err := pgx.Connect(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(t.Context()) })
	})

	if err := execute(t.Context(), at, "SELECT 1"); err == nil {
		t.Fatal("the database is still there")
	}
}

func TestOwnPostgresKeepsWhatWasCommittedThroughAKill(t *testing.T) {
	t.Parallel()
	server := OwnPostgres(t)
	if err := execute(t.Context(), server.URL, "CREATE TABLE kept (id int)"); err != nil {
		t.Fatal(err)
	}

	server.Kill(t)
	if err := execute(t.Context(), server.URL, "SELECT 1"); err == nil {
		t.Fatal("a killed server answers")
	}

	server.Start(t)
	if err := execute(t.Context(), server.URL, "SELECT id FROM kept"); err != nil {
		t.Fatal(err)
	}
}

func TestOwnRedisIsKilledStartedAndPaused(t *testing.T) {
	t.Parallel()
	server := OwnRedis(t)
	server.Kill(t)

	if err := pingRedis(t.Context(), server.Addr); err == nil {
		t.Fatal("a killed server answers")
	}

	server.Start(t)
	if err := pingRedis(t.Context(), server.Addr); err != nil {
		t.Fatal(err)
	}

	server.Pause(t)
	if err := pingRedis(t.Context(), server.Addr); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a paused server: %v; want no answer", err)
	}

	server.Resume(t)
	if err := pingRedis(t.Context(), server.Addr); err != nil {
		t.Fatal(err)
	}
}

func TestSharedRabbitMQAnswers(t *testing.T) {
	at, err := url.Parse(RabbitMQ(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := probeAMQP(t.Context(), at.Host); err != nil {
		t.Fatal(err)
	}
}

func TestPrefixFitsATopicNameAndIsUnique(t *testing.T) {
	legal := regexp.MustCompile(`^[a-z0-9-]{1,50}$`)
	t.Run("Ünusual/Näme with spaces, "+strings.Repeat("long", 50), func(t *testing.T) {
		one, two := Prefix(t), Prefix(t)
		if one == two || !legal.MatchString(one) {
			t.Fatalf("%q, %q", one, two)
		}
	})
}
