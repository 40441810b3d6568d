package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// ApiVersions (key 18).
//
// Versions 0 to 4 are served. v3 is flexible and tells the client's name. A request
// of a version that is not served is answered in version 0 with UNSUPPORTED_VERSION
// and all ranges, so that the client can choose one (KIP-511). The header of the
// answer is never flexible.
var apiAPIVersions = &api{key: keyAPIVersions, name: "ApiVersions", min: 0, max: 4, replication: true, handle: (*exchange).apiVersions}

func (x *exchange) apiVersions(context.Context, kmsg.Request) (kmsg.Response, error) {
	return x.versionRanges(x.version, CodeNone), nil
}

func (x *exchange) unsupportedAPIVersions() (kmsg.Response, error) {
	return x.versionRanges(0, CodeUnsupportedVersion), nil
}

func (x *exchange) versionRanges(version int16, code Code) *kmsg.ApiVersionsResponse {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = version
	resp.ErrorCode = x.fail(code)
	for _, a := range x.apis {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey = a.key
		k.MinVersion, k.MaxVersion = a.versions(x.Listener)
		resp.ApiKeys = append(resp.ApiKeys, k)
	}
	return resp
}
