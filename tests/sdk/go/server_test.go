// Starts the server under test from its binary, and stops it by kill -9.
//
// In: ASTRARIUM_BIN, the binary; by default target/release/astrarium of this repository.
// Out: a *server that answers, and clients for it over http and https.
// Invariants: every server listens on its own free port and is dead when its test ends; nothing outside the test's
// temporary folder is written.
// Not here: what the tests expect (expect_test.go).

package sdk

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

// The key that every emulator of the service has.
const emulatorKey = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw=="

// A second key, given to the servers as read-only key.
const readOnlyKey = "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdC1zdWl0ZXM="

const readyTimeout = 5 * time.Minute

// The server that all tests share which do not need to kill it.
var shared *server

func TestMain(m *testing.M) {
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	port, err := freePort()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared, err = startServer(port, "--memory")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.kill()
	return m.Run()
}

// A running server.
type server struct {
	port    int
	storage []string
	process *exec.Cmd
	log     *bytes.Buffer
}

// Starts a server on the port and waits until it is ready. storage is --memory, or --data and a folder.
func startServer(port int, storage ...string) (*server, error) {
	binary, err := binaryPath()
	if err != nil {
		return nil, err
	}
	arguments := append([]string{"serve", "--listen", fmt.Sprintf("127.0.0.1:%d", port), "--read-only-key", readOnlyKey}, storage...)
	started := &server{port: port, storage: storage, process: exec.Command(binary, arguments...), log: &bytes.Buffer{}}
	started.process.Stderr = started.log
	if err := started.process.Start(); err != nil {
		return nil, err
	}
	if err := started.waitReady(); err != nil {
		started.kill()
		return nil, fmt.Errorf("%w; the server's log: %s", err, started.log)
	}
	return started, nil
}

func binaryPath() (string, error) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		return "", err
	}
	binary := os.Getenv("ASTRARIUM_BIN")
	if binary == "" {
		binary = filepath.Join("target", "release", "astrarium")
	}
	if !filepath.IsAbs(binary) {
		binary = filepath.Join(root, binary)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("no server binary; run cargo build --release first: %w", err)
	}
	return binary, nil
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

func (s *server) waitReady() error {
	deadline := time.Now().Add(readyTimeout)
	for {
		response, err := http.Get(s.endpoint("http") + "ready")
		if err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server was not ready after %v", readyTimeout)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Ends the process as a power failure would: no signal handler runs.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// Kills the server and starts it again on the same folder and port.
func (s *server) restart(t *testing.T) {
	t.Helper()
	s.kill()
	again, err := startServer(s.port, s.storage...)
	if err != nil {
		t.Fatal(err)
	}
	s.process, s.log = again.process, again.log
}

func (s *server) endpoint(scheme string) string {
	return fmt.Sprintf("%s://127.0.0.1:%d/", scheme, s.port)
}

// A server of its own for one test, with its data in a folder that outlives a kill.
func newDurableServer(t *testing.T) *server {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	own, err := startServer(port, "--data", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.kill)
	return own
}

// An SDK client. Over http it is the SDK as it comes; over https its transport trusts the server's authority.
func (s *server) client(t *testing.T, scheme, key string) *azcosmos.Client {
	t.Helper()
	credential, err := azcosmos.NewKeyCredential(key)
	if err != nil {
		t.Fatal(err)
	}
	options := &azcosmos.ClientOptions{}
	if scheme == "https" {
		options.ClientOptions = azcore.ClientOptions{Transport: s.trustingTransport(t)}
	}
	client, err := azcosmos.NewClientWithKey(s.endpoint(scheme), credential, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func (s *server) trustingTransport(t *testing.T) *http.Client {
	t.Helper()
	response, err := http.Get(s.endpoint("http") + "_explorer/emulator.pem")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	pem, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(pem) {
		t.Fatalf("/_explorer/emulator.pem holds no certificate: %q", pem)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}
