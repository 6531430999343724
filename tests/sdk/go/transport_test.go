// What lies below the SDK: the protocol that was really spoken, and one connection used for many requests.

package sdk

import (
	"net/http"
	"testing"
)

// Over TLS the client offers HTTP/2 and the server must take it; in clear text this SDK speaks HTTP/1.1.
func TestProtocol(t *testing.T) {
	for scheme, protocol := range map[string]string{"http": "HTTP/1.1", "https": "HTTP/2.0"} {
		t.Run(scheme, func(t *testing.T) {
			f := newFixture(t, shared.client(t, scheme, emulatorKey))
			container := f.container(t, "items")
			created := succeed(container.CreateItem(background, someKey, encode(t, someDocument("1", 1)), nil))(t)
			equal(t, "protocol", created.RawResponse.Proto, protocol)
			equal(t, "encrypted", created.RawResponse.TLS != nil, scheme == "https")
			refused := refuse(container.ReadItem(background, someKey, "absent", nil))(t, 404, "NotFound")
			equal(t, "protocol", refused.RawResponse.Proto, protocol)
		})
	}
}

// A client that does not trust the server's authority must not get through.
func TestUntrustedAuthority(t *testing.T) {
	response, err := (&http.Client{Transport: &http.Transport{}}).Get(shared.endpoint("https") + "ready")
	if err == nil {
		response.Body.Close()
		t.Fatal("the certificate is trusted without its authority")
	}
}
