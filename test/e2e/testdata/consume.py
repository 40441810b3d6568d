"""consume.py BROKERS TOPIC END: prints the records below offset END as lines."""
import sys

from kafka import KafkaConsumer, TopicPartition

brokers, topic, end = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
consumer = KafkaConsumer(bootstrap_servers=brokers, enable_auto_commit=False)
partition = TopicPartition(topic, 0)
consumer.assign([partition])
consumer.seek_to_beginning(partition)
for record in consumer:
    sys.stdout.buffer.write(record.value + b"\n")
    if record.offset + 1 >= end:
        break
