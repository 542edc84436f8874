package brokers

import (
	"encoding/binary"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/ThreeDotsLabs/watermill-kafka/v3/pkg/kafka"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// kafkaCluster is a cluster in this process that speaks Kafka's protocol.
type kafkaCluster struct {
	t       *testing.T
	cluster *kfake.Cluster
	down    atomic.Bool
	read    []chan *message.Message
	taken   []*message.Message
}

const partitions = 4

var errDown = errors.New("down")

func newKafka(t *testing.T) broker {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(partitions, "orders"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	b := &kafkaCluster{t: t, cluster: cluster}
	cluster.Control(func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if b.down.Load() && (r.Key() == int16(kmsg.Produce) || r.Key() == int16(kmsg.Metadata)) {
			return nil, errDown, true // closes the connection
		}
		if produce, ok := r.(*kmsg.ProduceRequest); ok {
			setEpoch(produce)
		}
		return nil, nil, false
	})
	consumer, err := sarama.NewConsumer(cluster.ListenAddrs(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, consumer.Close()) })
	for p := range int32(partitions) {
		of, err := consumer.ConsumePartition("orders", p, sarama.OffsetOldest)
		require.NoError(t, err)
		t.Cleanup(func() { _ = of.Close() })
		read := make(chan *message.Message, 1<<20)
		b.read = append(b.read, read)
		go func() {
			for raw := range of.Messages() {
				msg, err := kafka.DefaultMarshaler{}.Unmarshal(raw)
				if err != nil {
					panic(err)
				}
				read <- msg
			}
		}()
	}
	return b
}

// setEpoch sets the epoch of the partition's leader in each batch to -1, which the cluster requires.
// A real broker accepts any value, and overwrites it.
func setEpoch(r *kmsg.ProduceRequest) {
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			if len(p.Records) >= 16 {
				binary.BigEndian.PutUint32(p.Records[12:], math.MaxUint32)
			}
		}
	}
}

func (b *kafkaCluster) address() string { return b.cluster.ListenAddrs()[0] }

func (b *kafkaCluster) outage(d time.Duration) {
	b.down.Store(true)
	defer b.down.Store(false)
	time.Sleep(d)
}

func (b *kafkaCluster) all() []*message.Message {
	for _, read := range b.read {
		for len(read) > 0 {
			b.taken = append(b.taken, <-read)
		}
	}
	return b.taken
}

func (b *kafkaCluster) accepted() (count int) {
	client, err := sarama.NewClient(b.cluster.ListenAddrs(), nil)
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, client.Close()) }()
	for p := range int32(partitions) {
		end, err := client.GetOffset("orders", p, sarama.OffsetNewest)
		require.NoError(b.t, err)
		count += int(end)
	}
	return count
}
