package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// machine has the programs that are measured.
type machine struct {
	work         string            // folder of this run
	programs     map[string]string // by build: ours, old or centrifugo
	benchProgram string
}

// servers are the processes of one run of a scenario.
type servers struct {
	*machine
	secure               bool        // the server has TLS
	dir                  string      // of all files of the processes
	server               *exec.Cmd   // what is measured: the last of processes
	processes            []*exec.Cmd // in the order of their start
	url                  string      // of the server
	brokerPort, password string      // the password is the user bench's
}

const centrifugoSecret = "benchmark-token-key"

// accountIDs are those of the directory file.
func accountIDs() (ids []string) {
	for n := range 200 {
		ids = append(ids, "a"+strconv.Itoa(n+1))
	}
	return ids
}

// start starts Redis, the broker and the server of a build.
func (s *servers) start(ctx context.Context, load scenario, build string) error {
	err := s.makeFolder()
	if err != nil {
		return err
	}

	redisPort := freePort()
	err = s.spawn(nil, "redis-server", "--bind", "127.0.0.1", "--port", redisPort, "--save", "", "--appendonly", "no",
		"--dir", s.dir)
	if err != nil {
		return err
	}

	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	shared := []string{
		"TRUNKLINE_SIP_LISTEN=off", "TRUNKLINE_DISK_MIN_FREE=0",
		"TRUNKLINE_MASTER_KEY=" + base64.StdEncoding.EncodeToString(key),
		"TRUNKLINE_REDIS_ADDRESS=127.0.0.1:" + redisPort, "TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_USER=0",
		"TRUNKLINE_FANOUT_MAX_CONNECTIONS_PER_ADDRESS=0",
	}

	s.brokerPort = freePort()
	metrics := freePort()
	err = s.spawn(append(shared, "TRUNKLINE_ROLES=api", "TRUNKLINE_TLS_MODE=off", "TRUNKLINE_LISTEN=127.0.0.1:"+freePort(),
		"TRUNKLINE_METRICS_LISTEN=127.0.0.1:"+metrics, "TRUNKLINE_DATA_DIR="+filepath.Join(s.dir, "broker"),
		"TRUNKLINE_KAFKA_EMBEDDED_LISTEN=127.0.0.1:"+s.brokerPort), s.programs[ours], "serve")
	if err != nil {
		return err
	}

	err = awaitOK(ctx, "http://127.0.0.1:"+metrics+"/readyz")
	if err != nil {
		return fmt.Errorf("the broker: %w", err)
	}

	if build == centrifugo {
		return s.startCentrifugo(ctx, redisPort)
	}
	return s.startTrunkline(ctx, load, build, shared)
}

func (s *servers) startTrunkline(ctx context.Context, load scenario, build string, shared []string) error {
	port, metrics := freePort(), freePort()
	s.password = "Quiet-River-77-lamp"
	directory := filepath.Join(s.dir, "directory.yaml")
	var b strings.Builder
	b.WriteString("accounts:\n- {id: root, name: root, domain: root.test}\n")
	for _, id := range accountIDs() {
		fmt.Fprintf(&b, "- {id: %s, name: %[1]s, domain: %[1]s.root.test, parent: root}\n", id)
	}
	fmt.Fprintf(&b, "users:\n- {account: root, username: bench, password: %s, role: admin}\n", s.password)

	err := os.WriteFile(directory, []byte(b.String()), 0o600)
	if err != nil {
		return err
	}

	mode, scheme := "off", "http"
	if s.secure {
		mode, scheme = "auto", "https"
	}

	environment := append(shared, "TRUNKLINE_ROLES=normalizer,fanout,api", "TRUNKLINE_TLS_MODE="+mode,
		"TRUNKLINE_LISTEN=127.0.0.1:"+port, "TRUNKLINE_METRICS_LISTEN=127.0.0.1:"+metrics,
		"TRUNKLINE_DATA_DIR="+filepath.Join(s.dir, "server"), "TRUNKLINE_DIRECTORY_FILE="+directory,
		"TRUNKLINE_KAFKA_BROKERS=127.0.0.1:"+s.brokerPort)
	if load.gather != "" {
		environment = append(environment, "TRUNKLINE_FANOUT_GATHER_WINDOW="+load.gather)
	}

	program := s.programs[build]
	if build == base {
		program = s.programs[ours]
	}

	err = s.spawn(environment, program, "serve")
	if err != nil {
		return err
	}

	s.server, s.url = s.processes[len(s.processes)-1], scheme+"://127.0.0.1:"+port
	return awaitOK(ctx, "http://127.0.0.1:"+metrics+"/readyz")
}

func (s *servers) startCentrifugo(ctx context.Context, redisPort string) error {
	port := freePort()
	server := map[string]any{"address": "127.0.0.1", "port": port}
	scheme := "http"
	if s.secure {
		certificate, key, err := selfSigned()
		if err != nil {
			return err
		}
		server["tls"] = map[string]any{"enabled": true, "cert_pem": certificate, "key_pem": key}
		scheme = "https"
	}

	config, err := json.Marshal(map[string]any{
		"http_server": server,
		"health":      map[string]any{"enabled": true},
		"log":         map[string]any{"level": "warn"},
		"engine":      map[string]any{"type": "redis", "redis": map[string]any{"address": "redis://127.0.0.1:" + redisPort}},
		"client":      map[string]any{"token": map[string]any{"hmac_secret_key": centrifugoSecret}},
		"uni_websocket": map[string]any{"enabled": true, "read_buffer_size": 512, "write_buffer_size": 512,
			"use_write_buffer_pool": true},
		"consumers": []any{map[string]any{"enabled": true, "name": "bench", "type": "kafka", "kafka": map[string]any{
			"brokers": []string{"127.0.0.1:" + s.brokerPort}, "topics": []string{"centrifugo"}, "consumer_group": "centrifugo",
			"publication_data_mode": map[string]any{"enabled": true, "channels_header": "centrifugo-channels"},
		}}},
	})
	if err != nil {
		return err
	}

	file := filepath.Join(s.dir, "centrifugo.json")
	err = os.WriteFile(file, config, 0o600)
	if err != nil {
		return err
	}

	err = s.spawn(nil, s.programs[centrifugo], "-c", file)
	if err != nil {
		return err
	}

	s.server, s.url = s.processes[len(s.processes)-1], scheme+"://127.0.0.1:"+port
	return awaitOK(ctx, s.url+"/health")
}

// The time of a server at rest that is not measured, and then that is.
const (
	restUnmeasured = 15 * time.Second
	restMeasured   = 30 * time.Second
)

// makeFolder makes the folder of a run, in memory where that is possible.
func (s *servers) makeFolder() (err error) {
	parent := "/dev/shm"
	if _, statErr := os.Stat(parent); statErr != nil {
		parent = s.work
	}
	s.dir, err = os.MkdirTemp(parent, "trunkline-benchmarks-")
	return err
}

// spawn starts a process that ends with this one.
func (s *servers) spawn(environment []string, name string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, fmt.Sprintf("%d-%s.log", len(s.processes), filepath.Base(name))))
	if err != nil {
		return err
	}
	defer log.Close()

	command := exec.Command(name, args...)
	command.Env = append(os.Environ(), environment...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

	err = command.Start()
	if err == nil {
		s.processes = append(s.processes, command)
	}
	return err
}

// stop ends the processes, the last first, and removes their files.
func (s *servers) stop() error {
	for i := len(s.processes) - 1; i >= 0; i-- {
		_ = s.processes[i].Process.Signal(syscall.SIGTERM) // it may have ended
		ended := time.AfterFunc(20*time.Second, func() { _ = s.processes[i].Process.Kill() })
		_ = s.processes[i].Wait() // its status tells nothing after a signal
		ended.Stop()
	}
	if s.dir == "" {
		return nil
	}
	return os.RemoveAll(s.dir)
}

func (s *servers) pids() (pids []string) {
	for _, command := range s.processes {
		pids = append(pids, strconv.Itoa(command.Process.Pid))
	}
	return pids
}

// loadEnvironment returns the environment variables of the load generator's process.
func (s *servers) loadEnvironment() []string {
	return []string{"TRUNKLINE_PASSWORD=" + s.password, "TRUNKLINE_DATA_DIR=" + filepath.Join(s.dir, "load"),
		"TRUNKLINE_KAFKA_BROKERS=127.0.0.1:" + s.brokerPort}
}

// awaitOK waits until a URL answers with 200.
func awaitOK(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // self-signed, on loopback
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()

	for {
		response, err := client.Get(url)
		if err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not become ready: %w", url, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freePort() string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err) // loopback has no port left
	}
	defer listener.Close()
	return strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
}

// selfSigned returns a certificate for 127.0.0.1 and its key, PEM.
func selfSigned() (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}

	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}

	encoded, err := x509.MarshalECPrivateKey(private)
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	key = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
	return certificate, key, err
}
