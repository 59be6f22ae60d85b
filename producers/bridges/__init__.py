"""What robots say over ROS and MQTT, as steps: one bridge a protocol, behind one signal mapping."""
