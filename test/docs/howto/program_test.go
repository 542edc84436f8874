package howto_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/millrace-dev/millrace/dynamotest"
	"github.com/millrace-dev/millrace/internal/await"
	"github.com/millrace-dev/millrace/test/docs/howto/program"
)

// It sets the providers of the process, so it cannot run in parallel.
func TestAProgramHasHealthChecksTracesAndMetrics(t *testing.T) {
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	tracers, meters := otel.GetTracerProvider(), otel.GetMeterProvider()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	t.Cleanup(func() {
		otel.SetTracerProvider(tracers)
		otel.SetMeterProvider(meters)
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- program.Run(ctx, dynamotest.New(t).Client(), listener) }()
	url := "http://" + listener.Addr().String()
	status := func(method, path, body string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		return response.StatusCode
	}
	await.True(t, "it is ready", func() bool { return status(http.MethodGet, "/readyz", "") == http.StatusOK })
	assert.Equal(t, http.StatusOK, status(http.MethodGet, "/healthz", ""))
	assert.Equal(t, http.StatusCreated, status(http.MethodPost, "/orders/1", `{"customer": "ada", "total": 7}`))

	var collected metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &collected))
	commits := int64(0)
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "millrace.repository.commits" {
				commits = sum.DataPoints[0].Value
			}
		}
	}
	assert.EqualValues(t, 1, commits)
	var names []string
	for _, span := range spans.Ended() {
		names = append(names, span.Name())
	}
	assert.Contains(t, strings.Join(names, ", "), "order")
	stop()
	assert.NoError(t, <-ended)
}
